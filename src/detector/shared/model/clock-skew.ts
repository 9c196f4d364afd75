import type { ClockOffset } from "../../../kube/server-time.ts";

/**
 * Clocks that differ by less count as equal, because transition times and the API server's `Date` have whole seconds.
 */
export const SKEW_NOTABLE_MS = 2_000;

/**
 * How far this agent's clock differs from the API server's, as text for the operator; undefined if they count as equal.
 */
export function describeClockOffset(offset: ClockOffset | undefined): string | undefined {
  if (offset === undefined || !isNotable(offset)) return undefined;
  const seconds = Math.round(Math.abs(offset.minMs + offset.maxMs) / 2_000);
  return `this agent's clock is ${seconds} s ${offset.maxMs < 0 ? "ahead of" : "behind"} the API server's`;
}

export function isNotable({ minMs, maxMs }: ClockOffset): boolean {
  return minMs > SKEW_NOTABLE_MS || maxMs < -SKEW_NOTABLE_MS;
}
