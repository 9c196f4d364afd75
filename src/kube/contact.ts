/** What the answers of an API server show about the server. */
export interface Contact {
  /**
   * Monotonic time since which the server has answered without an outage that this process noticed. Infinity before its
   * first answer, and after etcd refused a write, until a write to a Lease or a Node succeeds again.
   */
  sinceMs: number;
  /**
   * The earliest time that the server's clock can show now, by its last answer; undefined if its answers have no date.
   * For the current time use `serverTimeMs` of `server-time.ts`, which takes every API server of the cluster into
   * account.
   */
  serverTimeMs: number | undefined;
  /**
   * Monotonic time since which the server's clock has not jumped, as far as this process noticed. The age of an earlier
   * timestamp is not known.
   */
  clockSteadySinceMs: number;
  /**
   * Whether the dates of the answers in the last minutes come from clocks that differ. Several API servers may share
   * one address, and the clock of one does not show the age of a timestamp that another one wrote.
   */
  areClocksApart?: boolean;
}

/** Contact with a cluster that may have several API servers. */
export interface ClusterContact extends Contact {
  /** As `serverTimeMs`, by the clock that was furthest behind in the last 25 to 50 s. */
  earliestServerTimeMs: number | undefined;
  /**
   * Monotonic time at which a call last failed, was refused with 429, or was slow. The present time if a slow call has
   * no answer yet.
   */
  troubledAtMs?: number;
  /** As `serverTimeMs`, by the clock that was furthest ahead in the last minutes. */
  latestServerTimeMs?: number | undefined;
}
