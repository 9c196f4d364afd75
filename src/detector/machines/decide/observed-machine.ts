import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { Node, NodeCondition } from "../../../api/kubernetes/core.ts";

// One Machine that a health check covers, and its health.

/** What is known of a machine's Node. */
export type ObservedNode =
  /** The machine names no Node yet. */
  | { state: "none" }
  | { state: "there"; node: Node }
  /** The machine names one that its cluster does not have. */
  | { state: "gone" }
  /** Its cluster cannot be reached. This does not prove that the Node is gone. */
  | { state: "unknown"; reason: string };

/** All that the health of one machine is judged by. */
export interface ObservedMachine {
  machine: Machine;
  /** The Cluster that the machine is of; undefined if the kind knows none (OKD). */
  cluster: Cluster | undefined;
  node: ObservedNode;
  /**
   * Since when a condition of the Node counts as having its status, on the clock of `nowMs`; undefined if it has no
   * transition time.
   */
  nodeSinceMs: (condition: NodeCondition) => number | undefined;
}

/** Why a Machine is unhealthy, as the conditions of both API versions of Cluster API say it. */
export interface Fault {
  reason: string;
  message: string;
  v1beta1: { reason: string; message: string };
}

/**
 * The health of a Machine. Only `healthy` counts as healthy: the other states are "not started or unhealthy" upstream.
 */
export type MachineHealth =
  | { state: "healthy" }
  /** An unhealthy condition or a missing node, whose duration is over at `untilMs`. */
  | { state: "waiting"; reason: string; untilMs: number }
  /** Neither healthy nor unhealthy: for example, it may still wait for its node, or it is being deleted. */
  | { state: "unsettled"; reason: string }
  /** Its health cannot be read. */
  | { state: "unknown"; reason: string }
  | { state: "unhealthy"; fault: Fault };
