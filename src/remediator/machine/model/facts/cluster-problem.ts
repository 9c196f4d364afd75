/** Why the cluster of a node cannot be worked with. */
export interface ClusterProblem {
  /** ClusterExchanged: another cluster answers than the one that was meant. */
  reason: "ClusterUnreachable" | "ClusterExchanged";
  /** For the operator, with the next step. */
  message: string;
}
