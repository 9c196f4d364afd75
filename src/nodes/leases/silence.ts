// How long a live kubelet may leave its lease unchanged, and when silence shows that the kubelet does not run, for a
// proof before the duration is over. In the remediator, `rules/outage/lease-silence.ts` judges it after a power-off.
// Pure.

/** The default duration of a kubelet. It is used for a lease without a duration. */
export const LEASE_DURATION_DEFAULT_MS = 40_000;
/** A kubelet renews its lease after a quarter of the duration, and at most 4 % later. */
const RENEWAL_JITTER = 1.04;
const RENEWAL_FRACTION = 0.25 * RENEWAL_JITTER;
/**
 * A lease keeps the duration that it was created with, so its kubelet may renew it less often than a short duration
 * suggests.
 */
const DURATION_COUNTED_MIN_MS = LEASE_DURATION_DEFAULT_MS;
/** How many gaps between renewals are kept, and how many must be known before silence proves anything. */
const GAPS_KEPT = 4;
const GAPS_SEEN_MIN = 2;
/** How late this agent may observe a renewal. */
const OVERDUE_SLACK_MS = 2_000;
const SILENCE_SLACK_MS = 5_600;
const LONG_SILENCE_SLACK_MS = 2_200;

/** How often a lease is renewed: the silence of the lease is judged by this. */
export interface RenewalPace {
  /**
   * The duration in the lease. A kubelet that takes over an existing lease keeps the duration, but renews at the
   * interval of its own configuration.
   */
  durationMs: number;
  /** The last observed times between two renewals. */
  gapsMs: readonly number[];
}

/** Adds a gap, and drops the oldest if there are too many. */
export function withGap(gapsMs: readonly number[], gapMs: number): readonly number[] {
  return [...gapsMs, gapMs].slice(-GAPS_KEPT);
}

/** The time without a change after which the renewal of a lease is overdue: 12.4 s with leases of 40 s. */
export function overdueAfterMs(pace: RenewalPace): number {
  return renewalMs(pace) + OVERDUE_SLACK_MS;
}

/** The shortest time after which any lease can be overdue. */
export const OVERDUE_AFTER_MIN_MS = overdueAfterMs({ durationMs: 0, gapsMs: [] });

/**
 * The time without a change after which a kubelet counts as silent if its host is proven off: 16 s with leases of 40 s,
 * which is one renewal and a margin. Infinity if too few renewals were observed to know how often the kubelet renews.
 */
export function earlySilenceMs(pace: RenewalPace): number {
  return isPaceKnown(pace) ? renewalMs(pace) + SILENCE_SLACK_MS : Infinity;
}

/** The same if only one device reports that the host is off: 23 s, which is two renewals and a margin. */
export function longEarlySilenceMs(pace: RenewalPace): number {
  return isPaceKnown(pace) ? 2 * renewalMs(pace) + LONG_SILENCE_SLACK_MS : Infinity;
}

/** Whether enough renewals were observed to know how often the kubelet renews. */
export function isPaceKnown({ gapsMs }: Pick<RenewalPace, "gapsMs">): boolean {
  return gapsMs.length >= GAPS_SEEN_MIN;
}

/**
 * The longest time until the next renewal: by the duration in the lease, or by the observed gaps if they are longer.
 */
function renewalMs({ durationMs, gapsMs }: RenewalPace): number {
  const nominalMs = Math.max(durationMs, DURATION_COUNTED_MIN_MS) * RENEWAL_FRACTION;
  const observedMs = Math.max(0, ...gapsMs);
  // A gap that is longer by at most the slack is only a late observation.
  return observedMs > nominalMs + OVERDUE_SLACK_MS ? observedMs * RENEWAL_JITTER : nominalMs;
}
