import type { Clock } from "../../runtime/clock.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import type { ClockOffset } from "../server-time.ts";
import type { KubeTransport } from "../transport.ts";

/** After this time, a less precise measurement replaces the best one, because clocks drift and are set. */
const KEPT_MS = 600_000;
/** The `Date` header has whole seconds, rounded down. */
const RESOLUTION_MS = 1_000;

/**
 * Wraps a transport, and compares the `Date` of each answer with the agent's clock. The result is no more precise than
 * one second plus the duration of the call.
 */
export function measureClock(
  transport: KubeTransport,
  clock: Clock,
): { transport: KubeTransport; clockOffset: () => ClockOffset | undefined } {
  let best: (ClockOffset & { atMs: number }) | undefined;
  const note = (header: string | undefined, startedMs: number): void => {
    const dateMs = parseTimeMs(header);
    if (dateMs === undefined) return;
    const atMs = clock.monotonicMs();
    const endMs = clock.nowMs();
    const beganMs = endMs - (atMs - startedMs);
    const measured = { minMs: dateMs - endMs, maxMs: dateMs + RESOLUTION_MS - beganMs, atMs };
    const isNarrower = best === undefined || measured.maxMs - measured.minMs <= best.maxMs - best.minMs;
    if (best === undefined || isNarrower || atMs - best.atMs > KEPT_MS) best = measured;
  };
  return {
    clockOffset: () => best && { minMs: best.minMs, maxMs: best.maxMs },
    transport: {
      async send(request, signal) {
        const startedMs = clock.monotonicMs();
        const answer = await transport.send(request, signal);
        note(answer.headers["date"], startedMs);
        return answer;
      },
      stream: (request, signal) => transport.stream(request, signal),
      close: () => transport.close(),
    },
  };
}
