import type { BareMetalRemediationStatus } from "../../api/ironfence/bare-metal-remediation.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Reason } from "../machine/model/decision/reasons.ts";
import type { Snapshot } from "../machine/model/facts/snapshot.ts";
import { statusCondition } from "../machine/model/status.ts";

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

/** What thousands of remediations may wait for together. These waits have no deadline. */
const POSTPONED: readonly (string | undefined)[] = [
  "WaitingForTurn",
  "Paused",
  "PauseUnknown",
  "Maintenance",
] satisfies Reason[];

/**
 * Whether a status that a decision wants to store may be stored later, because it only reports what a remediation waits
 * for that has not begun. Until it is stored, an agent that restarts knows only what the creator of the
 * remediation recorded, so that record must say the same of the node. If the Node is deleted, the report is stored at
 * once. The report of a remediation that may inherit a host is not postponed, because the owner of the host looks for
 * it before it powers the host on.
 */
export function mayBePostponed({ state, node, remediation }: Snapshot, status: BareMetalRemediationStatus): boolean {
  const isWait = state.name === "Resolving" && POSTPONED.includes(statusCondition(status, "Processing")?.reason);
  if (!isWait || status.attempt?.action !== "None" || node === undefined) return false;
  const { wasReady, bootIDAtStart, uid, zone } = status.node ?? {};
  const readyInBoot = wasReady === false ? "" : bootIDAtStart;
  const { nodeAtCreation: known } = remediation;
  if (known?.uid !== uid || known?.bootID !== bootIDAtStart || known?.zone !== zone) return false;
  return wasReady !== undefined && readyInBoot !== undefined && remediation.readyInBoot === readyInBoot;
}
