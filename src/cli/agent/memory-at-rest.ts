import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Memory } from "../../runtime/memory.ts";

/** How often the agent checks whether it is at rest. */
const CHECK_MS = 60_000;
/** The agent is at rest if its main thread was busy for less than this share of the time. */
const BUSY_SHARE = 0.3;
/** How often garbage is collected while the agent is at rest. */
const COLLECT_MS = 600_000;

/**
 * Collects the garbage of the agent while it is at rest: in the first quiet minute after its start or after a burst of
 * work, and every ten minutes from then on. V8 itself collects only when its heap has grown enough, so an agent that
 * does little would keep the memory of its last burst for hours.
 *
 * @returns once `signal` aborts.
 */
export async function collectAtRest(clock: Clock, memory: Memory, signal: AbortSignal): Promise<void> {
  let dueMs = -Infinity;
  memory.busyShare();
  while (!signal.aborted) {
    await sleep(clock, CHECK_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    if (memory.busyShare() >= BUSY_SHARE) {
      dueMs = -Infinity;
    } else if (clock.monotonicMs() >= dueMs) {
      memory.collect();
      dueMs = clock.monotonicMs() + COLLECT_MS;
    }
  }
}
