import type { Clock } from "../runtime/clock.ts";
import type { ClusterContact } from "./contact.ts";

/**
 * How far the API server's clock is ahead of our own, in milliseconds: somewhere between the two. Negative: ours is
 * ahead.
 */
export interface ClockOffset {
  minMs: number;
  maxMs: number;
}

interface Dated {
  clock: Clock;
  contact: () => ClusterContact;
}

/**
 * The earliest time that the clocks of the API servers show. A period that ends by such a clock must not end too soon
 * for an agent whose own clock is ahead, or is set while it runs. The agent's own clock counts until an answer has a
 * date.
 */
export function serverTimeMs({ clock, contact }: Dated): number {
  return contact().earliestServerTimeMs ?? clock.nowMs();
}

/**
 * The latest time that the clocks of the API servers show: an object must not look younger than it is because another
 * API server stamped it. Our own clock if no answer has a date.
 */
export function latestStampMs({ clock, contact }: Dated): number {
  return contact().latestServerTimeMs ?? clock.nowMs();
}

/** The time by the API server's clock, no sooner than it is, such as for a pause that must not end before its time. */
export function latestServerTimeMs(runtime: { clock: Clock; clockOffset?(): ClockOffset | undefined }): number {
  return runtime.clock.nowMs() + (runtime.clockOffset?.()?.maxMs ?? 0);
}
