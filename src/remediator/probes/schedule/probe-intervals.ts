// How often a target is probed, and when its status is too old to rely on.

/** How often targets are probed. */
export interface ProbeIntervals {
  /** The time between two probes of a healthy target in a small cluster. */
  quietMs: number;
  /** The time before a failed probe is tried again, at first. It doubles after each further failure. */
  retryMinMs: number;
  /** The longest time before a failed probe is tried again. */
  retryMaxMs: number;
  /** The same while the node is not Ready, because its next fence waits for the BMC. */
  downRetryMs: number;
  /**
   * The time after the BMC has refused user or password, unless the Secret or the target changes: more tries lock
   * accounts.
   */
  authRetryMs: number;
  /** The shortest time between two probes of one target, however often it changes. */
  changeMs: number;
  /**
   * The shortest mean time between the probes of two devices. In large clusters it makes the other intervals longer.
   */
  spacingMs: number;
  /**
   * The time after a probe of a host whose node is not Ready, if a health check requests a proof of Off. It doubles up
   * to `quietMs`.
   */
  outageMs: number;
}

/**
 * A probe takes at most 2 API calls (one read of a Secret, one write of a status), so `spacingMs` keeps a healthy
 * cluster of any size below one call per second. With up to 240 devices, each is probed every 10 minutes.
 */
export const DEFAULT_PROBE_INTERVALS: ProbeIntervals = {
  quietMs: 600_000,
  retryMinMs: 120_000,
  retryMaxMs: 600_000,
  downRetryMs: 30_000,
  authRetryMs: 900_000,
  changeMs: 5_000,
  spacingMs: 2_500,
  outageMs: 15_000,
};

/**
 * The shortest time between two writes of `lastProbeTime` if nothing else has changed: every write is a load on the
 * API server.
 */
export const PROBE_TIME_WRITE_MS = 3_600_000;

/**
 * The age from which the status of a target may be out of date, although an agent works.
 *
 * @param devices of all targets.
 */
export function probeOldMs(devices: number): number {
  const { quietMs, spacingMs } = DEFAULT_PROBE_INTERVALS;
  return PROBE_TIME_WRITE_MS + 2 * Math.max(quietMs, devices * spacingMs);
}
