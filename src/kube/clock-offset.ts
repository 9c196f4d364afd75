import type { Clock } from "../runtime/clock.ts";

/**
 * How far the API server's clock is ahead of our own, in milliseconds: somewhere between the two. Negative: ours is
 * ahead.
 */
export interface ClockOffset {
  minMs: number;
  maxMs: number;
}

/** The time by the API server's clock, no sooner than it is, such as for a pause that must not end before its time. */
export function latestServerTimeMs(runtime: { clock: Clock; clockOffset?(): ClockOffset | undefined }): number {
  return runtime.clock.nowMs() + (runtime.clockOffset?.()?.maxMs ?? 0);
}
