// How often a target is probed, and when its status is too old to rely on.

/** How often targets are probed. */
export interface ProbeIntervals {
  /** Between two probes of a healthy target, in a cluster small enough for it. */
  quietMs: number;
  /** Before a failed probe is tried again: from this, doubling … */
  retryMinMs: number;
  /** … up to this. */
  retryMaxMs: number;
  /** The longest such wait while the node is not Ready: the next fence of it waits for the BMC. */
  downRetryMs: number;
  /** After the BMC refused user or password, unless the Secret or the target changes: more tries lock accounts. */
  authRetryMs: number;
  /** Least time between two probes of one target, however often it changes. */
  changeMs: number;
  /** Least mean time between the probes of any two devices: it stretches the other intervals in large clusters. */
  spacingMs: number;
  /**
   * After a probe of a host whose node is not Ready, if a health check wants it proven off; doubling up to `quietMs`.
   */
  outageMs: number;
}

/**
 * With at most 2 API calls a probe (one Secret read, one status write), `spacingMs` keeps a quiet cluster of any size below
 * one call a second; 240 devices and fewer are each probed every 10 minutes.
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

/** The age from which the status of a target may be out of date, although an agent works. @param devices of all targets. */
export function probeOldMs(devices: number): number {
  const { quietMs, spacingMs } = DEFAULT_PROBE_INTERVALS;
  return PROBE_TIME_WRITE_MS + 2 * Math.max(quietMs, devices * spacingMs);
}
