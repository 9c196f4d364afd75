import type { Amount } from "../../../api/schema/amount.ts";
import type { NodeHealth } from "./health.ts";

/** While it is not met, no new remediation starts. */
export type Threshold = { kind: "minHealthy"; amount: Amount } | { kind: "maxUnhealthy"; amount: Amount };

/** The counts by which the threshold is judged. */
export interface NodeCounts {
  /** Nodes that the selector covers. */
  selected: number;
  /** Those of them that are healthy and have no remediation left. */
  healthy: number;
  /** Nodes that were deleted or relabeled while their remediation continues. They still count in the total. */
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
  /** Whether they are. */
  isMet: boolean;
}

/** The default of a health check that names neither threshold. */
export const DEFAULT_THRESHOLD: Threshold = { kind: "minHealthy", amount: { unit: "percent", percent: 51 } };

/** Whether remediations may start. Shares are rounded up, as Kubernetes does it for both thresholds. */
export function judgeThreshold(threshold: Threshold, counts: NodeCounts): ThresholdJudgment {
  const total = counts.selected + counts.absent;
  const amount = scale(threshold.amount, total);
  const required = threshold.kind === "minHealthy" ? amount : Math.max(0, total - amount);
  return { required, isMet: counts.healthy >= required };
}

/** Whether a node that fails alone may be remediated. If not, the threshold is too high for so few nodes. */
export function toleratesOne(threshold: Threshold, selected: number): boolean {
  return judgeThreshold(threshold, { selected, healthy: selected - 1, absent: 0 }).isMet;
}

/**
 * Which of two counts of the same nodes is used.
 *
 * @param watched by the watched view.
 * @param live by a list of this moment; undefined if the view was fresh. It can only prevent what the view allows.
 */
export function chooseCounts(threshold: Threshold, watched: NodeCounts, live: NodeCounts | undefined): NodeCounts {
  return live === undefined || judgeThreshold(threshold, live).isMet ? watched : live;
}

/** The counts if nodes with an overdue renewal no longer count as healthy. */
export function withoutOverdue(counts: NodeCounts, overdueNodes: number): NodeCounts {
  return { ...counts, healthy: counts.healthy - overdueNodes };
}

/** Counts nodes; all that are unhealthy, soon will be or have a remediation must be in `nodes`. */
export function countNodes(selectedNodes: number, nodes: readonly CountedNode[]): NodeCounts {
  const notHealthy = nodes.filter(({ health, remediations }) => health.state !== "healthy" || remediations.length > 0);
  return {
    selected: selectedNodes,
    healthy: selectedNodes - notHealthy.filter(({ selected }) => selected).length,
    absent: notHealthy.filter(({ selected, remediations }) => !selected && remediations.length > 0).length,
  };
}

function scale(amount: Amount, total: number): number {
  // Integers in and out: `total * percent` is exact, so no rounding error can lift a whole result by one.
  return amount.unit === "nodes" ? amount.count : Math.ceil((total * amount.percent) / 100);
}
