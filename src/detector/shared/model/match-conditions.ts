import type { UnhealthyCondition } from "../../../api/schema/unhealthy-condition.ts";

/** A condition that has the status of an unhealthy condition. */
export interface ConditionMatch {
  unhealthy: UnhealthyCondition;
  /** Since when it has that status. */
  sinceMs: number;
  /** When its duration is over. */
  dueMs: number;
}

/**
 * The conditions that match, in the order of `unhealthyConditions`. A condition that is absent matches nothing. Neither
 * does one without a transition time: its duration can never be proven, and a power-off needs proof.
 *
 * Transition times have whole seconds, rounded down, so a duration is over at most one second early and never late.
 *
 * @param sinceOf returns since when a condition has its status, on the clock of the caller.
 */
export function matchConditions<C extends { type: string; status: string }>(
  unhealthyConditions: readonly UnhealthyCondition[],
  conditions: readonly C[],
  sinceOf: (condition: C) => number | undefined,
): ConditionMatch[] {
  return unhealthyConditions.flatMap((unhealthy) => {
    const condition = conditions.find(({ type }) => type === unhealthy.type);
    if (condition?.status !== unhealthy.status) return [];
    const sinceMs = sinceOf(condition);
    return sinceMs === undefined ? [] : [{ unhealthy, sinceMs, dueMs: sinceMs + unhealthy.durationMs }];
  });
}
