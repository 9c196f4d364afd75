import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { Node, NodeCondition } from "../../../api/kubernetes/core.ts";

// One Machine that a health check covers, and its health.

/** What is known about the Node of a Machine. */
export type ObservedNode =
  /** The Machine names no Node yet. */
  | { state: "none" }
  | { state: "there"; node: Node }
  /** The Machine names a Node that does not exist in its cluster. */
  | { state: "gone" }
  /** The Node cannot be read, or may not belong to the Machine. This does not prove that it was deleted. */
  | { state: "unknown"; reason: string };

/** The data by which the health of a Machine is judged. */
export interface ObservedMachine {
  machine: Machine;
  /** The Cluster of the Machine; undefined if the vendor has no Clusters (OKD). */
  cluster: Cluster | undefined;
  node: ObservedNode;
  /**
   * Since when a condition of the Node counts as having its status, on the clock of `nowMs`; undefined if it has no
   * transition time.
   */
  nodeSinceMs: (condition: NodeCondition) => number | undefined;
}

/** Why a Machine is unhealthy, in the form of the conditions of both API versions of Cluster API. */
export interface Fault {
  reason: string;
  message: string;
  v1beta1: { reason: string; message: string };
}

/** The health of a Machine. Upstream counts all states other than `healthy` as "not started or unhealthy". */
export type MachineHealth =
  | { state: "healthy" }
  /** It has an unhealthy condition or no node yet. The duration of that is over at `untilMs`. */
  | { state: "waiting"; reason: string; untilMs: number }
  /** Neither healthy nor unhealthy: for example, it may still wait for its node, or it is being deleted. */
  | { state: "unsettled"; reason: string }
  /** Its health cannot be read. */
  | { state: "unknown"; reason: string }
  | { state: "unhealthy"; fault: Fault };
