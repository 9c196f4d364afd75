import { z } from "zod";

const SIZE_BYTES_MAX = 256 * 1024 * 1024;
const DEPTH_MAX = 1_000_000;

/** Certificates that no client may trust. */
const SPOILT_CERTIFICATES = ["expired", "otherName", "otherAuthority"] as const;
export type SpoiltCertificate = (typeof SPOILT_CERTIFICATES)[number];

/**
 * Faults that can be injected into a mock. They are plain JSON, so that tests, scenario files and the control endpoint
 * use the same form.
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
  /** Apply it only to the first of every `every` matching requests; to all by default. */
  every: z.int().min(2).optional(),
  action: z.discriminatedUnion("type", [
    /** The request is delayed and then handled normally. */
    z.strictObject({ type: z.literal("delay"), delayMs: z.number().min(0) }),
    /** There is no answer; `effect` says whether the request takes effect. */
    z.strictObject({ type: z.literal("hang"), effect: z.enum(["none", "done"]) }),
    /** The connection is reset instead of an answer; `effect` says whether the request takes effect. */
    z.strictObject({ type: z.literal("drop"), effect: z.enum(["none", "done"]) }),
    /**
     * The BMC restarts at this request, before or after its effect. It does not answer for `downMs`, and its sessions
     * are gone.
     */
    z.strictObject({ type: z.literal("restartBmc"), effect: z.enum(["none", "done"]), downMs: z.number().min(0) }),
    /** The answer has this status, and the request has no effect. */
    z.strictObject({
      type: z.literal("status"),
      status: z.int().min(200).max(599),
      headers: z.record(z.string(), z.string()).default({}),
      /** A Redfish error by default. */
      body: z.string().optional(),
    }),
    /** Logins are refused as if all sessions were in use. */
    z.strictObject({ type: z.literal("sessionsFull") }),
    /** Power orders are answered with 202 and a task. The task ends when the host has reached the state, or never. */
    z.strictObject({
      type: z.literal("task"),
      retryAfterSeconds: z.int().min(0).default(1),
      endless: z.boolean().default(false),
    }),
    /** Power orders that would change nothing are refused with this status, as iLO (400) and iDRAC (409) do. */
    z.strictObject({ type: z.literal("refuseNoChange"), status: z.int().min(400).max(499) }),
    /** Sets top-level properties of the answer, and removes other properties and headers. */
    z.strictObject({
      type: z.literal("override"),
      properties: z.record(z.string(), z.unknown()).default({}),
      without: z.array(z.string()).default([]),
      /** Names in lower case. */
      withoutHeaders: z.array(z.string()).default([]),
    }),
    /** The body is this text, whatever the answer would have been. */
    z.strictObject({ type: z.literal("body"), text: z.string() }),
    /** The body ends half-way, although Content-Length is that of the whole body. */
    z.strictObject({ type: z.literal("truncate") }),
    /** The answer's body comes byte by byte. */
    z.strictObject({ type: z.literal("trickle"), everyMs: z.number().positive() }),
    /** The mock sends bytes that are not HTTP and closes the connection. */
    z.strictObject({ type: z.literal("garbage") }),
    /** An answer of about this many bytes. */
    z.strictObject({ type: z.literal("huge"), sizeBytes: z.int().positive().max(SIZE_BYTES_MAX) }),
    /** An answer nested this deeply. */
    z.strictObject({ type: z.literal("deep"), depth: z.int().positive().max(DEPTH_MAX) }),
    /**
     * TLS of new connections must not be trusted (`match` is ignored): the certificate has expired, is for another name
     * or is signed by another authority; the version is too old; there are plain bytes instead of a handshake; or there
     * is never a handshake.
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
/** Faults of connections, before there is a request. */
export type TlsFault = Extract<AnyAction, { type: "badTls" }>;
/** Faults of requests and their answers. */
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

  /** @returns a function that removes the fault. @throws Error if the rule is invalid. */
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

  /** The fault of the newest rule that matches this request. Counts the use of the rule. */
  take(method: string, path: string): FaultAction | undefined {
    return this.#take(({ rule: { match, action }, path: pattern }) => {
      const isOurs = (match.method === undefined || match.method === method) && pattern.test(path);
      return isOurs && action.type !== "badTls" ? action : undefined;
    });
  }

  /** The newest fault for a new connection. Counts the use of the rule. */
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
without times until it is removed, with every for the first of each N. If several match, the newest applies. Actions:

  delay delayMs                      slow
  trickle everyMs                    slow: the answer comes byte by byte
  hang effect                        no answer; effect: none (the request has no effect) or done
  drop effect                        the connection is reset instead of an answer
  restartBmc effect, downMs          the BMC restarts in the middle of it
  status status [headers] [body]     for example 401, 403, 409, 412, 429, 500, 503, without any effect
  sessionsFull                       logins are refused as if the session table were full
  task [retryAfterSeconds] [endless] power orders run as tasks, which may never end
  refuseNoChange status              orders that would change nothing are refused
  override [properties] [without] [withoutHeaders]
                                     the answer has other properties or headers
  body text                          the answer is this text
  truncate, garbage                  the answer ends half-way; is not HTTP
  huge sizeBytes, deep depth         a large, a deeply nested answer
  badTls how                         how: expired, otherName, otherAuthority, oldVersion, garbage or silent
`;
