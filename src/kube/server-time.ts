import type { Clock } from "../runtime/clock.ts";
import type { ClusterContact } from "./contact.ts";

/**
 * How far the API server's clock is ahead of the agent's: between `minMs` and `maxMs`. Negative if the agent's clock is
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
 * if the agent's own clock is ahead or is set while it runs. Until an answer has a date, this is the agent's own time.
 */
export function serverTimeMs({ clock, contact }: Dated): number {
  return contact().earliestServerTimeMs ?? clock.nowMs();
}

/**
 * The latest time that the clocks of the API servers show. An object must not look younger than it is because another
 * API server wrote its timestamp. If no answer has a date, this is the agent's own time.
 */
export function latestStampMs({ clock, contact }: Dated): number {
  return contact().latestServerTimeMs ?? clock.nowMs();
}

/**
 * The latest time that the API server's clock can show now. Use it for the end of a period that must not be too early.
 */
export function latestServerTimeMs(runtime: { clock: Clock; clockOffset?(): ClockOffset | undefined }): number {
  return runtime.clock.nowMs() + (runtime.clockOffset?.()?.maxMs ?? 0);
}
