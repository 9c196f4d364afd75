import { z } from "zod";

const SIZE_BYTES_MAX = 256 * 1024 * 1024;
const DEPTH_MAX = 1_000_000;

/** Certificates that no client may trust. */
const SPOILT_CERTIFICATES = ["expired", "otherName", "otherAuthority"] as const;
export type SpoiltCertificate = (typeof SPOILT_CERTIFICATES)[number];

/**
 * Faults of a mock on command. They are plain JSON, so that a test, a scenario file and the control endpoint say the
 * same.
 */
export const faultRuleSchema = z.strictObject({
  /** Requests that the rule is for: all by default. */
  match: z
    .strictObject({
      method: z.string().optional(),
      /** Regular expression for the path. */
      path: z.string().optional(),
    })
    .default({}),
  /** How many matching requests it is applied to; all by default. */
  times: z.int().positive().optional(),
  /** Of the requests that match each n-th alone, the first one included; all by default. */
  every: z.int().min(2).optional(),
  action: z.discriminatedUnion("type", [
    /** Slow: the request waits, then goes on as usual. */
    z.strictObject({ type: z.literal("delay"), delayMs: z.number().min(0) }),
    /** No answer ever, before or after the effect. */
    z.strictObject({ type: z.literal("hang"), effect: z.enum(["none", "done"]) }),
    /** The connection is reset instead of an answer, before or after the effect. */
    z.strictObject({ type: z.literal("drop"), effect: z.enum(["none", "done"]) }),
    /**
     * The BMC restarts at this request, before or after its effect: it is silent for so long, and its sessions are
     * gone.
     */
    z.strictObject({ type: z.literal("restartBmc"), effect: z.enum(["none", "done"]), downMs: z.number().min(0) }),
    /** This status instead of any effect. */
    z.strictObject({
      type: z.literal("status"),
      status: z.int().min(200).max(599),
      headers: z.record(z.string(), z.string()).default({}),
      /** A Redfish error by default. */
      body: z.string().optional(),
    }),
    /** Logins are refused as if all sessions were taken. */
    z.strictObject({ type: z.literal("sessionsFull") }),
    /** Power orders answer 202 with a task, which ends when the host is there, or never. */
    z.strictObject({
      type: z.literal("task"),
      retryAfterSeconds: z.int().min(0).default(1),
      endless: z.boolean().default(false),
    }),
    /** Power orders that would change nothing are refused with this status, as iLO (400) and iDRAC (409) do. */
    z.strictObject({ type: z.literal("refuseNoChange"), status: z.int().min(400).max(499) }),
    /** Sets top-level properties of the answer, and leaves others, and headers, out. */
    z.strictObject({
      type: z.literal("override"),
      properties: z.record(z.string(), z.unknown()).default({}),
      without: z.array(z.string()).default([]),
      /** In lower case. */
      withoutHeaders: z.array(z.string()).default([]),
    }),
    /** This text as the body, whatever the answer would have been. */
    z.strictObject({ type: z.literal("body"), text: z.string() }),
    /** The answer's body ends half way; its Content-Length does not. */
    z.strictObject({ type: z.literal("truncate") }),
    /** The answer's body comes byte by byte. */
    z.strictObject({ type: z.literal("trickle"), everyMs: z.number().positive() }),
    /** Bytes that are no HTTP, then the end of the connection. */
    z.strictObject({ type: z.literal("garbage") }),
    /** An answer of about this many bytes. */
    z.strictObject({ type: z.literal("huge"), sizeBytes: z.int().positive().max(SIZE_BYTES_MAX) }),
    /** An answer nested this deeply. */
    z.strictObject({ type: z.literal("deep"), depth: z.int().positive().max(DEPTH_MAX) }),
    /**
     * New connections meet a TLS that must not be trusted, whatever they ask for (`match` means nothing here): a
     * certificate that has expired, is for another name or signed by another authority; a version that is too old;
     * plain bytes instead of a handshake; or no handshake ever.
     */
    z.strictObject({
      type: z.literal("badTls"),
      how: z.enum([...SPOILT_CERTIFICATES, "oldVersion", "garbage", "silent"]),
    }),
  ]),
});

/** A rule as a caller writes it. */
export type FaultRule = z.input<typeof faultRuleSchema>;
type AnyAction = z.output<typeof faultRuleSchema>["action"];
/** What spoils connections, before there is a request. */
export type TlsFault = Extract<AnyAction, { type: "badTls" }>;
/** What spoils requests and their answers. */
export type FaultAction = Exclude<AnyAction, TlsFault>;

interface Entry {
  rule: z.output<typeof faultRuleSchema>;
  path: RegExp;
  left: number;
  /** Requests that matched. */
  met: number;
}

/** The faults that are switched on. */
export class FaultBook {
  #entries: Entry[] = [];

  /** @returns the way to take the fault away. @throws Error where the rule makes no sense. */
  add(rule: FaultRule): () => void {
    const parsed = faultRuleSchema.parse(rule);
    const entry = { rule: parsed, path: new RegExp(parsed.match.path ?? ""), left: parsed.times ?? Infinity, met: 0 };
    this.#entries.unshift(entry);
    return () => {
      this.#entries = this.#entries.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#entries = [];
  }

  /** The fault of the newest rule that matches this request, and counts it. */
  take(method: string, path: string): FaultAction | undefined {
    return this.#take(({ rule: { match, action }, path: pattern }) => {
      const isOurs = (match.method === undefined || match.method === method) && pattern.test(path);
      return isOurs && action.type !== "badTls" ? action : undefined;
    });
  }

  /** The newest fault for a new connection, and counts it. */
  takeForConnection(): TlsFault | undefined {
    return this.#take(({ rule: { action } }) => (action.type === "badTls" ? action : undefined));
  }

  #take<T>(choose: (entry: Entry) => T | undefined): T | undefined {
    for (const entry of this.#entries) {
      const chosen = entry.left > 0 ? choose(entry) : undefined;
      if (chosen === undefined) continue;
      entry.met += 1;
      if ((entry.met - 1) % (entry.rule.every ?? 1) !== 0) continue;
      entry.left -= 1;
      return chosen;
    }
    return undefined;
  }
}

/** Help on the faults. */
export const FAULTS_HELP = `A fault: {"match":{"method":"POST","path":"REGEXP"},"times":N,"every":N,"action":{"type":...}}, without match for all requests,
without times until it is switched off, with every for each n-th of them. Of several that match the newest is applied. Actions:

  delay delayMs                      slow
  trickle everyMs                    slow: the answer comes byte by byte
  hang effect                        no answer ever; effect: none (nothing was done) or done
  drop effect                        the connection is reset in place of the answer
  restartBmc effect, downMs          the BMC restarts in the middle of it
  status status [headers] [body]     for example 401, 403, 409, 412, 429, 500, 503, in place of any effect
  sessionsFull                       logins are refused as if the session table were full
  task [retryAfterSeconds] [endless] power orders run as tasks, which may never end
  refuseNoChange status              orders that would change nothing are refused
  override [properties] [without] [withoutHeaders]
                                     the answer says something else
  body text                          the answer is this text
  truncate, garbage                  the answer ends half way; is not HTTP
  huge sizeBytes, deep depth         a large, a deeply nested answer
  badTls how                         how: expired, otherName, otherAuthority, oldVersion, garbage or silent
`;
