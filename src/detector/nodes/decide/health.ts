import type { NodeCondition } from "../../../api/core.ts";
import { parseTimeMs } from "../../../runtime/time.ts";

/** A condition that makes a node unhealthy once it has stood for `durationMs`. */
export interface HealthRule {
  type: string;
  status: string;
  durationMs: number;
}

/** How a node is by its conditions. "Soon unhealthy" is neither: a rule matches, and its duration is not over before `untilMs`. */
export type Health =
  | { state: "healthy" }
  /** `notSkipped`: why its duration is not skipped, if it would be if the host were proven off. */
  | { state: "soonUnhealthy"; rule: HealthRule; untilMs: number; notSkipped?: string }
  | { state: "unhealthy"; rule: HealthRule; sinceMs: number; skipped?: Skipped };

/** Why a node counts as unhealthy before its duration is over. */
export interface Skipped {
  /** The proof that its host is off, in words. */
  proof: string;
  /** How long that proof counts. */
  untilMs: number;
  /** When the duration would be over. */
  durationUntilMs: number;
}

const HEALTHY: Health = { state: "healthy" };

/**
 * Judges a node by its conditions at `nowMs`: unhealthy when one rule's duration is over, else soon unhealthy when one
 * matches. A condition that is absent matches nothing. Neither does one without a transition time: its
 * duration can never be proven, and a power-off needs proof.
 *
 * @param sinceOf since when a condition counts as standing, on the same clock as `nowMs`; by default its transition time.
 *
 * Transition times have whole seconds, rounded down, so a duration is over at most one second early and never late.
 */
export function judgeHealth(
  rules: readonly HealthRule[],
  conditions: readonly NodeCondition[] | undefined,
  nowMs: number,
  sinceOf = (condition: NodeCondition): number | undefined => parseTimeMs(condition.lastTransitionTime),
): Health {
  let health = HEALTHY;
  for (const rule of rules) {
    const condition = conditions?.find(({ type }) => type === rule.type);
    if (condition?.status !== rule.status) continue;
    const sinceMs = sinceOf(condition);
    if (sinceMs === undefined) continue;
    const untilMs = sinceMs + rule.durationMs;
    if (untilMs <= nowMs) return { state: "unhealthy", rule, sinceMs };
    if (health.state !== "soonUnhealthy" || untilMs < health.untilMs) {
      health = { state: "soonUnhealthy", rule, untilMs };
    }
  }
  return health;
}
