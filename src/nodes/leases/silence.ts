// How long a live kubelet may leave its lease unchanged, and from when on that shows that it does not live. Pure.

/** A lease without a duration of its own counts as a kubelet's default. */
export const LEASE_DURATION_DEFAULT_MS = 40_000;
/** A kubelet renews its lease after a quarter of the duration, and at most 4 % later. */
const RENEWAL_FRACTION = 0.25 * 1.04;
/** A lease keeps the duration that it was created with, so a kubelet may renew less often than a short one says. */
const DURATION_COUNTED_MIN_MS = LEASE_DURATION_DEFAULT_MS;
/** What a renewal may take until this agent has seen it. */
const OVERDUE_SLACK_MS = 2_000;
const SILENCE_SLACK_MS = 5_600;
const LONG_SILENCE_SLACK_MS = 2_200;

/** After so long without a change the renewal of a lease is overdue: 12.4 s with leases of 40 s. */
export function overdueAfterMs(durationMs: number): number {
  return renewalMs(durationMs) + OVERDUE_SLACK_MS;
}

/**
 * After so long without a change a kubelet is silent whose host is proven off: 16 s with leases of 40 s, one renewal
 * with time to spare.
 */
export function earlySilenceMs(durationMs: number): number {
  return renewalMs(durationMs) + SILENCE_SLACK_MS;
}

/** The same if only one device says that the host is off: 23 s, two renewals. */
export function longEarlySilenceMs(durationMs: number): number {
  return 2 * renewalMs(durationMs) + LONG_SILENCE_SLACK_MS;
}

function renewalMs(durationMs: number): number {
  return Math.max(durationMs, DURATION_COUNTED_MIN_MS) * RENEWAL_FRACTION;
}
