import type { MachineHealthCheckSpec } from "../../../api/cluster-api/machine-health-check.ts";
import type { Amount } from "../../../api/schema/amount.ts";
import { parseAmount } from "../../../api/schema/amount.ts";

/** How many unhealthy Machines allow remediation; `text` is the value in the spec. */
export type UnhealthyLimit =
  | { kind: "range"; min: number; max: number; text: string }
  | { kind: "max"; amount: Amount; text: string };

export interface UnhealthyLimitJudgment {
  allowed: boolean;
  /** How many more Machines may become unhealthy until no remediation starts. */
  remaining: number;
  /** The text of upstream; used only if remediation is not allowed. */
  message: string;
}

const RANGE = /^\[([0-9]{1,9})-([0-9]{1,9})\]$/;

/** @returns a text that says what is wrong with the fields, if they are invalid. */
export function compileUnhealthyLimit(
  spec: Pick<MachineHealthCheckSpec, "unhealthyInRange" | "unhealthyLessThanOrEqualTo">,
): UnhealthyLimit | string {
  const { unhealthyInRange: range, unhealthyLessThanOrEqualTo: max = "100%" } = spec;
  if (range !== undefined) {
    const match = RANGE.exec(range);
    const [low, high] = [Number(match?.[1]), Number(match?.[2])];
    if (match === null) return `the range of unhealthy machines ${range} must have the form [3-5]`;
    if (high < low) return `the range of unhealthy machines ${range} ends before it begins`;
    return { kind: "range", min: low, max: high, text: range };
  }
  const amount = parseAmount(max);
  if (amount === undefined)
    return `the number of unhealthy machines ${max} must be a number or a percentage such as 40%`;
  return { kind: "max", amount, text: String(max) };
}

/**
 * Whether remediation may start with this number of unhealthy Machines. Percentages are rounded down, as upstream does.
 */
export function judgeUnhealthyLimit(
  unhealthyLimit: UnhealthyLimit,
  expected: number,
  unhealthy: number,
): UnhealthyLimitJudgment {
  const start = "Remediation is not allowed, the number of not started or unhealthy machines";
  const counts = `total: ${expected}, unhealthy: ${unhealthy}`;
  if (unhealthyLimit.kind === "range") {
    const allowed = unhealthy >= unhealthyLimit.min && unhealthy <= unhealthyLimit.max;
    const message = `${start} does not fall within the range (${counts}, unhealthyRange: ${unhealthyLimit.text})`;
    return { allowed, remaining: allowed ? unhealthyLimit.max - unhealthy : 0, message };
  }
  const { amount } = unhealthyLimit;
  // Both factors are integers, so `expected * percent` is exact.
  const max = amount.unit === "nodes" ? amount.count : Math.floor((expected * amount.percent) / 100);
  const allowed = unhealthy <= max;
  const message = `${start} exceeds maxUnhealthy (${counts}, maxUnhealthy: ${unhealthyLimit.text})`;
  return { allowed, remaining: allowed ? max - unhealthy : 0, message };
}
