import { z } from "zod";

const SIZE_BYTES_MAX = 256 * 1024 * 1024;
const DEPTH_MAX = 1_000_000;

/** Faults of a mock on command. They are plain JSON, so that a test, a scenario file and the control endpoint say the same. */
export const faultRuleSchema = z.strictObject({
  /** Requests that the rule is for: all where absent. */
  match: z
    .strictObject({
      method: z.string().optional(),
      /** Regular expression for the path. */
      path: z.string().optional(),
    })
    .default({}),
  /** How many matching requests it is applied to; all where absent. */
  times: z.int().positive().optional(),
  action: z.discriminatedUnion("type", [
    /** Slow: the request waits, then goes on as usual. */
    z.strictObject({ type: z.literal("delay"), delayMs: z.number().min(0) }),
    /** No answer ever, before or after the effect. */
    z.strictObject({ type: z.literal("hang"), effect: z.enum(["none", "done"]) }),
    /** The connection is reset instead of an answer, before or after the effect. */
    z.strictObject({ type: z.literal("drop"), effect: z.enum(["none", "done"]) }),
    /** This status instead of any effect. */
    z.strictObject({
      type: z.literal("status"),
      status: z.int().min(200).max(599),
      headers: z.record(z.string(), z.string()).default({}),
      /** A Redfish error where absent. */
      body: z.string().optional(),
    }),
    /** Power orders answer 202 with a task, which ends when the host is there, or never. */
    z.strictObject({
      type: z.literal("task"),
      retryAfterSeconds: z.int().min(0).default(1),
      endless: z.boolean().default(false),
    }),
    /** Power orders that would change nothing are refused with this status, as iLO (400) and iDRAC (409) do. */
    z.strictObject({ type: z.literal("refuseNoChange"), status: z.int().min(400).max(499) }),
    /** Sets top-level properties of the answer, and leaves others out. */
    z.strictObject({
      type: z.literal("override"),
      properties: z.record(z.string(), z.unknown()).default({}),
      without: z.array(z.string()).default([]),
    }),
    /** This text as the body, whatever the answer would have been. */
    z.strictObject({ type: z.literal("body"), text: z.string() }),
    /** The answer's body ends half way; its Content-Length does not. */
    z.strictObject({ type: z.literal("truncate") }),
    /** An answer of about this many bytes. */
    z.strictObject({ type: z.literal("huge"), sizeBytes: z.int().positive().max(SIZE_BYTES_MAX) }),
    /** An answer nested this deeply. */
    z.strictObject({ type: z.literal("deep"), depth: z.int().positive().max(DEPTH_MAX) }),
  ]),
});

/** A rule as a caller writes it. */
export type FaultRule = z.input<typeof faultRuleSchema>;
export type FaultAction = z.output<typeof faultRuleSchema>["action"];

/** The faults that are switched on. */
export class FaultBook {
  #rules: { rule: z.output<typeof faultRuleSchema>; path: RegExp; left: number }[] = [];

  /** @returns the way to take the fault away. @throws Error where the rule makes no sense. */
  add(rule: FaultRule): () => void {
    const parsed = faultRuleSchema.parse(rule);
    const entry = { rule: parsed, path: new RegExp(parsed.match.path ?? ""), left: parsed.times ?? Infinity };
    this.#rules.unshift(entry);
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  /** The fault of the newest rule that matches this request, and counts it. */
  take(method: string, path: string): FaultAction | undefined {
    const entry = this.#rules.find(
      ({ rule, path: pattern, left }) =>
        left > 0 && (rule.match.method === undefined || rule.match.method === method) && pattern.test(path),
    );
    if (entry === undefined) return undefined;
    entry.left -= 1;
    return entry.rule.action;
  }
}
