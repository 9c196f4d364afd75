import type { Cluster, Machine } from "../../../api/cluster-api.ts";
import type { Node, NodeCondition } from "../../../api/core.ts";

// One machine that a health check covers, and how it is.

/** What is known of a machine's Node. */
export type ObservedNode =
  /** The machine names no Node yet. */
  | { state: "none" }
  | { state: "there"; node: Node }
  /** The machine names one that its cluster does not have. */
  | { state: "gone" }
  /** Its cluster cannot be reached. That is not the same as gone, and proves nothing. */
  | { state: "unknown"; reason: string };

/** All that the health of one machine is judged by. */
export interface Target {
  machine: Machine;
  /** The Cluster that the machine is of; undefined if the kind knows none (OKD). */
  cluster: Cluster | undefined;
  node: ObservedNode;
  /** Since when a condition of the Node counts as standing, on the clock of `nowMs`; undefined if it has no transition time. */
  nodeSinceMs: (condition: NodeCondition) => number | undefined;
}

/** Why a machine is unhealthy, in the words of both forms of Cluster API's conditions. */
export interface Fault {
  reason: string;
  message: string;
  v1beta1: { reason: string; message: string };
}

/** How a machine is. Only `healthy` counts as such: the others are "not started or unhealthy" upstream. */
export type MachineHealth =
  | { state: "healthy" }
  /** Something is wrong and its time is not over before `untilMs`. */
  | { state: "waiting"; reason: string; untilMs: number }
  /** Nothing is wrong with it, and it is not well either: for example it has no node yet and may wait for it, or is being deleted. */
  | { state: "unsettled"; reason: string }
  /** It cannot be known how it is. */
  | { state: "unknown"; reason: string }
  | { state: "unhealthy"; fault: Fault };
