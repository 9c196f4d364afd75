/** Keeps a node or machine from a new remediation for a while, because of what happened when one was about to start. */
export interface Deferral {
  /** In words, e.g. who deferrals the node's lease. */
  reason: string;
  untilMs: number;
  cause: DeferralCause;
}

export type DeferralCause =
  /** A live read differs from the view: it catches up within a second, so nobody is told. */
  | "staleView"
  /** A live list of the nodes leaves the threshold no room. */
  | "threshold"
  /** Somebody else deferrals the node's lease. */
  | "lease"
  /** etcd would lose its quorum. */
  | "etcd"
  /** The API server refuses the new remediation. */
  | "refused"
  /** The API server refuses to delete the machine. */
  | "deletionRefused";
