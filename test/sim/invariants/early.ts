import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Facts, Invariant, OrderRecord } from "./facts.ts";

// Rules about remediations that began before the duration of their nodes was over.

/** For this long after a host was powered on, the agent may still send an order, because it may not know that yet. */
const READ_GRACE_MS = 6_000;

/**
 * S16. Until the duration of its node is over, the user decides about the power of a host: a remediation that began
 * early neither powers it off after it has come back, nor powers it on, unless this undoes its own power-off. A wrong
 * report of a device excuses a power-off.
 */
export const leavesReturned: Invariant = {
  name: "S16",
  says: "before the duration of a node is over, its host is neither forced off once it has come back nor powered on",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.outcome !== "Started" || !isEarly(facts, step.record)) return undefined;
    const { host, order, remediation = "" } = step.record;
    if (order === "On") {
      const isUndone = facts.remediations.get(remediation)?.status?.phase === "Undoing";
      return isUndone ? undefined : `${host} was powered on before the duration of its node was over`;
    }
    const sinceMs = Math.max(facts.notOffSinceMs.get(host) ?? facts.atMs, facts.calmSinceMs);
    const forMs = facts.atMs - sinceMs;
    return forMs > READ_GRACE_MS && facts.devicesWell
      ? `${host} was forced off before the duration of its node was over, ${forMs} ms after it had come back`
      : undefined;
  },
};

function isEarly(facts: Facts, { remediation = "" }: OrderRecord): boolean {
  const notBeforeMs = parseTimeMs(facts.remediations.get(remediation)?.spec.powerOnNotBefore);
  return notBeforeMs !== undefined && facts.epochMs < notBeforeMs && facts.clocksAgree && !facts.isServerClockSet;
}
