/** Defers a new remediation of a node or machine, because of what was found when one was about to start. */
export interface Deferral {
  /** In words, for example who holds the node's lease. */
  reason: string;
  untilMs: number;
  cause: DeferralCause;
}

export type DeferralCause =
  /** A live read differs from the watched object: the watch catches up within a second, so no Event is recorded. */
  | "staleView"
  /** A live list of the nodes leaves the threshold no room. */
  | "threshold"
  /** Another holder has the node's lease. */
  | "lease"
  /** etcd would lose its quorum. */
  | "etcd"
  /** The API server refuses the new remediation. */
  | "refused"
  /** The API server refuses to delete the machine. */
  | "deletionRefused";
