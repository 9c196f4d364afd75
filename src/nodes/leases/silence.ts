// How long a live kubelet may leave its lease unchanged, and from when on that shows that it does not live. Pure.

/** A lease without a duration of its own counts as a kubelet's default. */
export const LEASE_DURATION_DEFAULT_MS = 40_000;
/** A kubelet renews its lease after a quarter of the duration, and at most 4 % later. */
const RENEWAL_JITTER = 1.04;
const RENEWAL_FRACTION = 0.25 * RENEWAL_JITTER;
/** A lease keeps the duration that it was created with, so a kubelet may renew less often than a short one says. */
const DURATION_COUNTED_MIN_MS = LEASE_DURATION_DEFAULT_MS;
/** How many gaps between renewals are remembered, and how many must have been seen before silence proves anything. */
const GAPS_KEPT = 4;
const GAPS_SEEN_MIN = 2;
/** What a renewal may take until this agent has seen it. */
const OVERDUE_SLACK_MS = 2_000;
const SILENCE_SLACK_MS = 5_600;
const LONG_SILENCE_SLACK_MS = 2_200;

/** What the silence of a lease is judged by. */
export interface RenewalPace {
  /** As the lease says it. A kubelet that takes a lease over keeps it, and renews by its own configuration. */
  durationMs: number;
  /** The last times between two renewals that were seen. */
  gapsMs: readonly number[];
}

/** The gaps of a lease with one more. */
export function withGap(gapsMs: readonly number[], gapMs: number): readonly number[] {
  return [...gapsMs, gapMs].slice(-GAPS_KEPT);
}

/** After so long without a change the renewal of a lease is overdue: 12.4 s with leases of 40 s. */
export function overdueAfterMs(pace: RenewalPace): number {
  return renewalMs(pace) + OVERDUE_SLACK_MS;
}

/** No lease is overdue sooner. */
export const OVERDUE_AFTER_MIN_MS = overdueAfterMs({ durationMs: 0, gapsMs: [] });

/**
 * After so long without a change a kubelet is silent whose host is proven off: 16 s with leases of 40 s, one renewal
 * with time to spare. Never, if too few renewals were seen to know how often it renews.
 */
export function earlySilenceMs(pace: RenewalPace): number {
  return isPaceKnown(pace) ? renewalMs(pace) + SILENCE_SLACK_MS : Infinity;
}

/** The same if only one device says that the host is off: 23 s, two renewals. */
export function longEarlySilenceMs(pace: RenewalPace): number {
  return isPaceKnown(pace) ? 2 * renewalMs(pace) + LONG_SILENCE_SLACK_MS : Infinity;
}

/** Whether enough renewals were seen to know how often the kubelet renews. */
export function isPaceKnown({ gapsMs }: Pick<RenewalPace, "gapsMs">): boolean {
  return gapsMs.length >= GAPS_SEEN_MIN;
}

/** The longest that the next renewal may take: by what was seen, if that is more than the duration says. */
function renewalMs({ durationMs, gapsMs }: RenewalPace): number {
  const toldMs = Math.max(durationMs, DURATION_COUNTED_MIN_MS) * RENEWAL_FRACTION;
  const seenMs = Math.max(0, ...gapsMs);
  // Within the slack a gap is a renewal that was a little late.
  return seenMs > toldMs + OVERDUE_SLACK_MS ? seenMs * RENEWAL_JITTER : toldMs;
}
