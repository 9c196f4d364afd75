import type { NodeCondition } from "../../../api/kubernetes/core.ts";
import type { UnhealthyCondition } from "../../../api/schema/unhealthy-condition.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { matchConditions } from "../../shared/model/match-conditions.ts";

/**
 * The health of a node by its conditions. A node is `soonUnhealthy` if an unhealthy condition matches and its duration
 * is not over before `untilMs`.
 */
export type NodeHealth =
  | { state: "healthy" }
  /**
   * `notSkipped`: why the rest of the duration is not skipped, if the health check skips durations of hosts that are
   * off.
   */
  | { state: "soonUnhealthy"; unhealthyCondition: UnhealthyCondition; untilMs: number; notSkipped?: string }
  | { state: "unhealthy"; unhealthyCondition: UnhealthyCondition; sinceMs: number; skipped?: SkippedDuration };

/** Why a node counts as unhealthy before its duration is over. */
export interface SkippedDuration {
  /** The proof that its host is off. Text for the operator. */
  proof: string;
  /** Until when the proof counts. */
  untilMs: number;
  /** When the duration is over. */
  durationUntilMs: number;
  /** Whether the node still says that it is Ready. */
  isEarly?: boolean;
}

const HEALTHY: NodeHealth = { state: "healthy" };

/**
 * Judges a node by its conditions at `nowMs`. It is unhealthy if an unhealthy condition matches and its duration is
 * over, and `soonUnhealthy` if one matches otherwise.
 *
 * @param sinceOf returns since when a condition has its status, on the same clock as `nowMs`; by default its transition
 *   time.
 */
export function judgeHealth(
  unhealthyConditions: readonly UnhealthyCondition[],
  conditions: readonly NodeCondition[] | undefined,
  nowMs: number,
  sinceOf = (condition: NodeCondition): number | undefined => parseTimeMs(condition.lastTransitionTime),
): NodeHealth {
  const matches = matchConditions(unhealthyConditions, conditions ?? [], sinceOf);
  const due = matches.find(({ dueMs }) => dueMs <= nowMs);
  if (due !== undefined) return { state: "unhealthy", unhealthyCondition: due.unhealthy, sinceMs: due.sinceMs };
  const [next] = matches.toSorted((a, b) => a.dueMs - b.dueMs);
  return next === undefined
    ? HEALTHY
    : { state: "soonUnhealthy", unhealthyCondition: next.unhealthy, untilMs: next.dueMs };
}
