/** What the answers of an API server say of itself. */
export interface Contact {
  /**
   * Monotonic time since which it has answered without an outage that this process noticed. Infinity before its first
   * answer, and from a write that etcd refused until a write to a Lease or a Node has gone through again.
   */
  sinceMs: number;
  /**
   * What its own clock reads now, at least, by its last answer; undefined if its answers have no date. For the present
   * time use `serverTimeMs` of `server-time.ts`, which counts every API server of the cluster.
   */
  serverTimeMs: number | undefined;
  /** Monotonic time since which that clock has not been seen to jump: the age of an earlier stamp is not known. */
  clockSteadySinceMs: number;
  /**
   * Whether answers of the last minutes were dated by clocks that differ: behind one address there may be several API
   * servers, and the clock of one says nothing about the age of a stamp of another.
   */
  areClocksApart?: boolean;
}

/** Contact with a cluster whose API servers may be several. */
export interface ClusterContact extends Contact {
  /** As `serverTimeMs`, by the clock that was furthest behind of late: the clocks of several API servers may differ. */
  earliestServerTimeMs: number | undefined;
  /** Monotonic time at which a call last failed, was refused as one too many, or was slow. */
  troubledAtMs?: number;
  /** As `serverTimeMs`, by the clock that was furthest ahead in the last minutes. */
  latestServerTimeMs?: number | undefined;
}
