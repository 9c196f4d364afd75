/** A health check that covers a node, and what keeps it from starting a remediation of the node now. */
export interface Watcher {
  /** Kind and name. */
  text: string;
  hold: { reason: string; message: string; isIntended: boolean } | undefined;
}
