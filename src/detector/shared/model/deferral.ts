/**
 * How soon a node or Machine is evaluated again if a live read differed from the watch. The watch has caught up by
 * then.
 */
export const STALE_RETRY_MS = 1_000;
/** How soon a request that the API server refused is sent again, if an immediate retry does not help. */
export const REFUSED_RETRY_MS = 15_000;

/** Defers a new remediation of a node or Machine, because of what was found when one was about to start. */
export interface Deferral {
  /** Text for the operator, for example who holds the node's lease. */
  reason: string;
  untilMs: number;
  cause: DeferralCause;
}

export type DeferralCause =
  /** A live read differs from the watched object: the watch catches up within a second, so no Event is recorded. */
  | "staleView"
  /** A live list of the nodes shows that the threshold is not met. */
  | "threshold"
  /** Another holder has the node's lease. */
  | "lease"
  /** etcd would lose its quorum. */
  | "etcd"
  /** The API server refuses the new remediation. */
  | "refused"
  /** The API server refuses to delete the Machine. */
  | "deletionRefused";
