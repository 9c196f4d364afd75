import type { Snapshot } from "../../model/facts/snapshot.ts";
import { ORDER_SETTLED_AFTER_MS } from "../../model/decision/timings.ts";

/** Monotonic time until which an unfinished AC cycle may still cut the host off; -Infinity if there is none. */
export function cycleSettledAtMs({ status, cycleSeenAtMs }: Pick<Snapshot, "status" | "cycleSeenAtMs">): number {
  const { acCycle } = status;
  if (acCycle === undefined || acCycle.result === "Done" || acCycle.result === "NotSent") return -Infinity;
  return cycleSeenAtMs + ORDER_SETTLED_AFTER_MS;
}

/** Whether an AC cycle may have cut the host off after a reading at `readAtMs`. */
export function isCyclePending(snapshot: Pick<Snapshot, "status" | "cycleSeenAtMs">, readAtMs: number): boolean {
  return readAtMs < cycleSettledAtMs(snapshot);
}
