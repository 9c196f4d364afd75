import type { Amount } from "../../../api/schema/amount.ts";
import type { NodeHealth } from "./health.ts";

/** How many nodes must be healthy. While the threshold is not met, no new remediation starts. */
export type Threshold = { kind: "minHealthy"; amount: Amount } | { kind: "maxUnhealthy"; amount: Amount };

/** The counts by which the threshold is judged. */
export interface NodeCounts {
  /** How many nodes the selector matches. */
  selected: number;
  /** How many of them are healthy and have no remediation. */
  healthy: number;
  /**
   * How many nodes were deleted or are no longer selected while their remediation continues. They still count in the
   * total.
   */
  absent: number;
}

/** The facts of a node that matter for the counts. */
export interface CountedNode {
  selected: boolean;
  health: NodeHealth;
  remediations: readonly unknown[];
}

export interface ThresholdJudgment {
  /** How many nodes must be healthy. */
  required: number;
  /** Whether at least that many nodes are healthy. */
  isMet: boolean;
}

/** The threshold of a health check that sets none. */
export const DEFAULT_THRESHOLD: Threshold = { kind: "minHealthy", amount: { unit: "percent", percent: 51 } };

/** Whether remediations may start. Percentages are rounded up for both kinds of threshold, as Kubernetes does. */
export function judgeThreshold(threshold: Threshold, counts: NodeCounts): ThresholdJudgment {
  const total = counts.selected + counts.absent;
  const amount = scale(threshold.amount, total);
  const required = threshold.kind === "minHealthy" ? amount : Math.max(0, total - amount);
  return { required, isMet: counts.healthy >= required };
}

/**
 * Whether a node may be remediated if no other node fails. If not, the threshold is too high for this number of nodes.
 */
export function toleratesOne(threshold: Threshold, selected: number): boolean {
  return judgeThreshold(threshold, { selected, healthy: selected - 1, absent: 0 }).isMet;
}

/**
 * Chooses between two counts of the same nodes.
 *
 * @param watched the counts of the watched view.
 * @param live the counts of a live list; undefined if the view is fresh. They can prevent a remediation that the view
 *   allows, but not allow one that it prevents.
 */
export function chooseCounts(threshold: Threshold, watched: NodeCounts, live: NodeCounts | undefined): NodeCounts {
  return live === undefined || judgeThreshold(threshold, live).isMet ? watched : live;
}

/** The counts if nodes with an overdue renewal no longer count as healthy. */
export function withoutOverdue(counts: NodeCounts, overdueNodes: number): NodeCounts {
  return { ...counts, healthy: counts.healthy - overdueNodes };
}

/** Counts nodes. `nodes` must contain every node that is not healthy or has a remediation. */
export function countNodes(selectedNodes: number, nodes: readonly CountedNode[]): NodeCounts {
  const notHealthy = nodes.filter(({ health, remediations }) => health.state !== "healthy" || remediations.length > 0);
  return {
    selected: selectedNodes,
    healthy: selectedNodes - notHealthy.filter(({ selected }) => selected).length,
    absent: notHealthy.filter(({ selected, remediations }) => !selected && remediations.length > 0).length,
  };
}

function scale(amount: Amount, total: number): number {
  // Both factors are integers, so `total * percent` is exact, and no rounding error can increase an integer result by
  // one.
  return amount.unit === "nodes" ? amount.count : Math.ceil((total * amount.percent) / 100);
}
