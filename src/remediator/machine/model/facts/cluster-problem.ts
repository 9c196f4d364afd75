/** Why the agent cannot work with the cluster of a node. */
export interface ClusterProblem {
  /** ClusterExchanged: the cluster that answers is not the recorded one. */
  reason: "ClusterUnreachable" | "ClusterExchanged";
  /** For the operator, with the next step. */
  message: string;
}
