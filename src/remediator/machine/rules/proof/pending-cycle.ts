import { parseTimeMs } from "../../../../runtime/time.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import { ORDER_SETTLED_AFTER_MS } from "../../model/decision/timings.ts";

/** Until when an AC cycle whose end was not seen may still cut the host off, in wall-clock time; -Infinity: never. */
export function cycleSettledAtMs({ status }: Pick<Snapshot, "status">): number {
  const { acCycle } = status;
  if (acCycle === undefined || acCycle.result === "Done" || acCycle.result === "NotSent") return -Infinity;
  return (parseTimeMs(acCycle.orderedAt) ?? -Infinity) + ORDER_SETTLED_AFTER_MS;
}

/** Whether an AC cycle may still have cut the host off after the reading of `readAtMs`. */
export function isCyclePending(snapshot: Pick<Snapshot, "status">, readAtMs: number, now: Now): boolean {
  return now.epochMs - (now.monotonicMs - readAtMs) < cycleSettledAtMs(snapshot);
}
