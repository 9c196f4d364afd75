import { z } from "zod";

/** The kind of a request. `discovery` asks for the engine ID. */
export const STEPS = ["discovery", "get", "set"] as const;
export type Step = (typeof STEPS)[number];

/** Faults that can be injected into a PDU, as plain JSON. */
export const faultRuleSchema = z.strictObject({
  /** Steps that the rule is for: all by default. */
  steps: z.array(z.enum(STEPS)).optional(),
  /** How many matching requests it is applied to; all by default. */
  times: z.int().positive().optional(),
  action: z.discriminatedUnion("type", [
    /** The request never arrives. */
    z.strictObject({ type: z.literal("loseRequest") }),
    /** The request takes effect; its answer never arrives. */
    z.strictObject({ type: z.literal("loseAnswer") }),
    /** The answer comes late. */
    z.strictObject({ type: z.literal("delay"), delayMs: z.number().min(0) }),
    /** The answer comes twice. */
    z.strictObject({ type: z.literal("duplicate") }),
    /** An answer that is not SNMP. */
    z.strictObject({ type: z.literal("garbage") }),
    z.strictObject({ type: z.literal("truncate") }),
    /** The PDU reports this error-status, and does nothing. */
    z.strictObject({ type: z.literal("errorStatus"), status: z.int().min(1).max(255) }),
    /** The answer to every object is noSuchInstance. */
    z.strictObject({ type: z.literal("noSuchInstance") }),
    /** All values are texts. */
    z.strictObject({ type: z.literal("wrongTypes") }),
    /** All numbers are ones that the MIB does not define. */
    z.strictObject({ type: z.literal("unknownValues") }),
    /** The values belong to other objects. */
    z.strictObject({ type: z.literal("otherObjects") }),
    /** The answer has fewer values than were asked for. */
    z.strictObject({ type: z.literal("fewerValues") }),
    /** An attacker without the keys answers first that the outlet is off. Version 3 only. */
    z.strictObject({ type: z.literal("forge"), as: z.enum(["plain", "signed", "otherEngine", "report"]) }),
    /** The PDU restarts before it executes the request, and does not answer for `downMs`. */
    z.strictObject({ type: z.literal("reboot"), downMs: z.number().min(0) }),
  ]),
});
export type FaultRule = z.infer<typeof faultRuleSchema>;
export type FaultAction = FaultRule["action"];

/** The active faults, in the order in which they were added. */
export class Faults {
  #rules: { rule: FaultRule; left: number }[] = [];

  /** @throws ZodError if the rule is invalid. */
  add(rule: unknown): FaultRule {
    const parsed = faultRuleSchema.parse(rule);
    this.#rules.push({ rule: parsed, left: parsed.times ?? Infinity });
    return parsed;
  }

  clear(): void {
    this.#rules = [];
  }

  /** The fault for this request, if any. */
  take(step: Step): FaultAction | undefined {
    const found = this.#rules.find(({ rule, left }) => left > 0 && (rule.steps?.includes(step) ?? true));
    if (found === undefined) return undefined;
    found.left -= 1;
    return found.rule.action;
  }
}
