import { z } from "zod";

/** What a datagram asks of the BMC, with the names of the specification. */
export const STEPS = [
  "GetChannelAuthenticationCapabilities",
  "GetChannelCipherSuites",
  "OpenSession",
  "RAKP1",
  "RAKP3",
  "SetSessionPrivilegeLevel",
  "CloseSession",
  "GetDeviceID",
  "GetSystemGUID",
  "GetChassisStatus",
  "ChassisControl",
  "ColdReset",
  "GetSystemRestartCause",
  "SetSystemBootOptions",
  "GetSystemBootOptions",
  "GetFRUInventoryAreaInfo",
  "ReadFRUData",
  "GetSensorReading",
  "ReserveSDR",
  "GetSDR",
  "GetSELInfo",
  "ReserveSEL",
  "GetSELEntry",
  "GetSELTime",
  "Other",
] as const;
export type Step = (typeof STEPS)[number];

const byte = z.int().min(0).max(255);

/**
 * Faults that can be injected into a mock. They are plain JSON, so that tests, scenario files and the control endpoint
 * use the same form.
 */
export const faultRuleSchema = z.strictObject({
  /** Steps that the rule is for: all by default. */
  steps: z.array(z.enum(STEPS)).optional(),
  /** How many matching requests it is applied to; all by default. */
  times: z.int().positive().optional(),
  action: z.discriminatedUnion("type", [
    /** The request never arrives: a hang before the effect. */
    z.strictObject({ type: z.literal("loseRequest") }),
    /** The request takes effect; its answer never arrives: a hang after the effect. */
    z.strictObject({ type: z.literal("loseAnswer") }),
    /** The network delivers the request late, when requests that were sent after it have already taken effect. */
    z.strictObject({ type: z.literal("lateRequest"), delayMs: z.number().min(0) }),
    /** A bad network: each datagram in either direction may be lost or duplicated at random. */
    z.strictObject({
      type: z.literal("badNetwork"),
      lossPercent: z.number().min(0).max(100),
      duplicatePercent: z.number().min(0).max(100),
    }),
    /**
     * The BMC restarts at this request, before or after its effect. It does not answer for `downMs`, and its sessions
     * are gone.
     */
    z.strictObject({ type: z.literal("restartBmc"), effect: z.enum(["none", "done"]), downMs: z.number().min(0) }),
    /** The answer comes late. */
    z.strictObject({ type: z.literal("delay"), delayMs: z.number().min(0) }),
    /** The network delivers the request twice. */
    z.strictObject({ type: z.literal("duplicateRequest") }),
    /** The network delivers the answer twice. */
    z.strictObject({ type: z.literal("duplicateAnswer") }),
    /** The answer before this one comes again, ahead of it. */
    z.strictObject({ type: z.literal("replay") }),
    /** The answer comes after the next one. */
    z.strictObject({ type: z.literal("reorder") }),
    /** The answer lacks this many bytes at its end. */
    z.strictObject({ type: z.literal("truncate"), bytes: z.int().positive().default(5) }),
    /** Meaningless bytes follow the answer. */
    z.strictObject({ type: z.literal("pad"), bytes: z.int().positive().max(60_000).default(4) }),
    /** The checksums of the message are wrong; its authentication code is right. */
    z.strictObject({ type: z.literal("badChecksum") }),
    /** The code that authenticates the answer is wrong. */
    z.strictObject({ type: z.literal("badAuthCode") }),
    /** The answer is neither authenticated nor encrypted. */
    z.strictObject({ type: z.literal("unprotected") }),
    /** The answer names another request: a wrong message tag or request sequence. */
    z.strictObject({ type: z.literal("wrongTag") }),
    /** The answer names another session. */
    z.strictObject({ type: z.literal("wrongSessionId") }),
    /** The answer repeats a session sequence number. */
    z.strictObject({ type: z.literal("staleSequence") }),
    /** The answer to Open Session names other algorithms than those asked for. */
    z.strictObject({
      type: z.literal("otherAlgorithms"),
      algorithms: z.tuple([byte, byte, byte]).default([0, 0, 0]),
    }),
    /** A refusal by an RMCP+ status (Open Session, RAKP). If `short`, the answer is only the status byte. */
    z.strictObject({ type: z.literal("status"), status: byte, short: z.boolean().default(false) }),
    /** A command is refused with this completion code, and has no effect. */
    z.strictObject({ type: z.literal("completionCode"), completionCode: byte }),
    /** A command succeeds with this data instead of its own. */
    z.strictObject({ type: z.literal("data"), data: z.array(byte).max(200) }),
    /** Random bytes instead of the answer. */
    z.strictObject({ type: z.literal("garbage"), bytes: z.int().min(0).max(60_000).default(48) }),
  ]),
});

/** A rule as a caller writes it. */
export type FaultRule = z.input<typeof faultRuleSchema>;
export type FaultAction = z.output<typeof faultRuleSchema>["action"];

/** The faults that are switched on. */
export class FaultBook {
  #rules: { steps: ReadonlySet<Step>; action: FaultAction; left: number }[] = [];

  /** @returns a function that removes the fault. @throws Error if the rule is invalid. */
  add(rule: FaultRule): () => void {
    const { steps, times, action } = faultRuleSchema.parse(rule);
    const entry = { steps: new Set(steps ?? STEPS), action, left: times ?? Infinity };
    this.#rules.unshift(entry);
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  /** The fault of the newest rule that matches this step. Counts the use of the rule. */
  take(step: Step): FaultAction | undefined {
    const entry = this.#rules.find(({ steps, left }) => left > 0 && steps.has(step));
    if (entry === undefined) return undefined;
    entry.left -= 1;
    return entry.action;
  }
}

/** Help on the faults. */
export const FAULTS_HELP = `A fault: {"steps":["ChassisControl"],"times":N,"action":{"type":...}}, without steps for all of them, without times until it is removed. If several match, the newest applies. Actions:

  delay delayMs                      slow
  loseRequest, loseAnswer            no answer; the request has no effect, or takes effect
  lateRequest delayMs                the network delays the request
  badNetwork lossPercent, duplicatePercent
  duplicateRequest, duplicateAnswer, replay, reorder
  restartBmc effect, downMs          the BMC restarts in the middle of it; effect: none or done
  truncate bytes, pad bytes, garbage bytes
  badChecksum, badAuthCode, unprotected, wrongTag, wrongSessionId, staleSequence
  otherAlgorithms algorithms         to Open Session
  status status [short]              a login is refused; 1: the session table is full, 13: no such user
  completionCode completionCode      a command is refused; 192: busy, 212: not allowed, 213: not in this state
  data data                          a command succeeds with these bytes

Steps: ${STEPS.join(", ")}.
`;
