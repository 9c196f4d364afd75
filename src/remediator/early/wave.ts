// Finds out whether many nodes stop renewing their leases together because their hosts lost power, or because their
// renewals do not arrive. Pure.

/** Nodes whose renewals become overdue within this time of each other are one wave. */
const WAVE_MS = 15_000;
/** How many hosts of a wave are read first, as a sample, and how many of these must read Off. */
const WAVE_SAMPLE = 8;
const WAVE_SAMPLE_OFF_MIN = 4;
/**
 * How long no host is read after a wave whose hosts are on. The time doubles with each such wave, up to the maximum.
 */
const WAVE_PAUSE_MIN_MS = 60_000;
const WAVE_PAUSE_MAX_MS = 600_000;

export interface Wave {
  /** When its first node became overdue; monotonic, as all times here. */
  readonly beganMs: number;
  /** Hosts that were read, and those of them that read Off. */
  readonly read: number;
  readonly off: number;
  readonly pausedUntilMs: number;
  /** The last pause; 0 if enough hosts of the last complete sample were off. */
  readonly pauseMs: number;
}

export const NO_WAVE: Wave = { beganMs: -Infinity, read: 0, off: 0, pausedUntilMs: -Infinity, pauseMs: 0 };

/** Notes that the renewal of a node has become overdue. */
export function noteOverdue(wave: Wave, nowMs: number): Wave {
  return nowMs - wave.beganMs <= WAVE_MS ? wave : { ...wave, beganMs: nowMs, read: 0, off: 0 };
}

/** Notes the first reading of a host. If too few hosts of a sample are off, no host is read for a while. */
export function noteReading(wave: Wave, isOff: boolean, nowMs: number): Wave {
  const next = { ...wave, read: wave.read + 1, off: wave.off + (isOff ? 1 : 0) };
  if (next.read !== WAVE_SAMPLE) return next;
  if (next.off >= WAVE_SAMPLE_OFF_MIN) return { ...next, pauseMs: 0 };
  const pauseMs = Math.min(Math.max(wave.pauseMs * 2, WAVE_PAUSE_MIN_MS), WAVE_PAUSE_MAX_MS);
  // A node that becomes overdue after the pause begins a new wave.
  return { ...NO_WAVE, pauseMs, pausedUntilMs: nowMs + pauseMs };
}

/** Whether one more host may be read, while the first readings of `pending` hosts are under way. */
export function mayRead(wave: Wave, pending: number, nowMs: number): boolean {
  if (nowMs < wave.pausedUntilMs) return false;
  return wave.read >= WAVE_SAMPLE || wave.read + pending < WAVE_SAMPLE;
}

/** Whether the readings may be used: the sample is complete, or all hosts of the wave were read. */
export function mayUse(wave: Wave, unread: number, nowMs: number): boolean {
  return nowMs >= wave.pausedUntilMs && (wave.read >= WAVE_SAMPLE || unread === 0);
}
