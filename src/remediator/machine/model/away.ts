/** Why the cluster of a node cannot be worked with. */
export interface Away {
  /** ClusterExchanged: another cluster answers than the one that was meant. */
  reason: "ClusterUnreachable" | "ClusterExchanged";
  /** For people, with the next step. */
  message: string;
}
