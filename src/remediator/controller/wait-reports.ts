import type { Clock } from "../../runtime/clock.ts";
import type { Decision } from "../machine/model/decision/decision.ts";
import type { Snapshot } from "../machine/model/facts/snapshot.ts";

/** At most 100 reports in a second. Some at once cost less than the same number one by one. */
const BATCH = 20;
const BATCH_MS = 200;

/**
 * Spaces the reports of remediations that only wait. If half of all nodes fail together, the reports of thousands of
 * waiting remediations must delay neither the creation of others nor the power-offs of those that begin.
 */
export class WaitReports {
  readonly #clock: Clock;
  #batchMs = -Infinity;
  #reserved = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Reserves a time for one report. @returns that time, monotonic milliseconds: now, if few reports came before. */
  reserve(): number {
    const nowMs = this.#clock.monotonicMs();
    if (this.#batchMs + BATCH_MS <= nowMs) [this.#batchMs, this.#reserved] = [nowMs, 0];
    else if (this.#reserved >= BATCH) [this.#batchMs, this.#reserved] = [this.#batchMs + BATCH_MS, 0];
    this.#reserved += 1;
    return this.#batchMs;
  }
}

/**
 * Whether a decision only reports what a remediation that has not begun waits for, and the report may be stored later.
 * Until it is stored, an agent that restarts knows only what the creator recorded, so that record must say whether the
 * node was Ready. A Node that is deleted leaves nothing else. The report of a remediation that may inherit a host is
 * not postponed, because the owner of the host looks for it before it powers the host on.
 */
export function mayBePostponed({ state, node, remediation }: Snapshot, { status, effects }: Decision): boolean {
  const isWait = state.name === "Resolving" && status?.phase === "Resolving" && effects.length === 0;
  const isRecorded = node !== undefined && remediation.readyInBoot !== undefined;
  return isWait && isRecorded && status.attempt?.action === "None" && status.node?.wasReady !== undefined;
}
