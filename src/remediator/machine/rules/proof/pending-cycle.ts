import type { Snapshot } from "../../model/facts/snapshot.ts";
import { ORDER_SETTLED_AFTER_MS } from "../../model/decision/timings.ts";

/** Until when an AC cycle whose end was not seen may still cut the host off, monotonic; -Infinity: never. */
export function cycleSettledAtMs({ status, cycleSeenAtMs }: Pick<Snapshot, "status" | "cycleSeenAtMs">): number {
  const { acCycle } = status;
  if (acCycle === undefined || acCycle.result === "Done" || acCycle.result === "NotSent") return -Infinity;
  return cycleSeenAtMs + ORDER_SETTLED_AFTER_MS;
}

/** Whether an AC cycle may still have cut the host off after the reading of `readAtMs`. */
export function isCyclePending(snapshot: Pick<Snapshot, "status" | "cycleSeenAtMs">, readAtMs: number): boolean {
  return readAtMs < cycleSettledAtMs(snapshot);
}
