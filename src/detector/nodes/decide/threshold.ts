import type { Amount } from "../../shared/model/amount.ts";
import type { Health } from "./health.ts";

/** Below it nothing new starts. */
export type Threshold = { kind: "minHealthy"; amount: Amount } | { kind: "maxUnhealthy"; amount: Amount };

/** How many nodes there are to judge the threshold by. */
export interface Census {
  /** Nodes that the selector covers. */
  selected: number;
  /** Those of them that are healthy and have no remediation left. */
  healthy: number;
  /** Nodes that are gone or were relabeled while their remediation continues: they still count in the total. */
  absent: number;
}

/** One node, as far as it counts. */
export interface Counted {
  selected: boolean;
  health: Health;
  remediations: readonly unknown[];
}

export interface Allowance {
  /** How many nodes must be healthy. */
  required: number;
  /** Whether they are. */
  isMet: boolean;
}

/** The default of a health check that names neither threshold. */
export const DEFAULT_THRESHOLD: Threshold = { kind: "minHealthy", amount: { unit: "percent", percent: 51 } };

/** Whether remediations may start. Shares are rounded up, as Kubernetes does it for both thresholds. */
export function judgeThreshold(threshold: Threshold, census: Census): Allowance {
  const total = census.selected + census.absent;
  const amount = scale(threshold.amount, total);
  const required = threshold.kind === "minHealthy" ? amount : Math.max(0, total - amount);
  return { required, isMet: census.healthy >= required };
}

/**
 * Which of two counts of the same nodes is used.
 *
 * @param seen by the watched view.
 * @param live by a list of this moment; undefined if the view was fresh. It can only prevent what the view allows.
 */
export function countThatCounts(threshold: Threshold, seen: Census, live: Census | undefined): Census {
  return live === undefined || judgeThreshold(threshold, live).isMet ? seen : live;
}

/** Counts nodes; all that are unhealthy, soon will be or have a remediation must be in `nodes`. */
export function takeCensus(selectedNodes: number, nodes: readonly Counted[]): Census {
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
