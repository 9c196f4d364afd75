import type { BareMetalRemediationStatus } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { State } from "../../machine/model/decision/state.ts";
import type { BoundedStrategy } from "../../machine/model/decision/strategy.ts";
import { DEVICE_FINAL_RETRY_MS, UNDO_MIN_MS } from "../../machine/model/decision/timings.ts";
import type { Now, Snapshot } from "../../machine/model/facts/snapshot.ts";

/**
 * The times in the status of one remediation, on this process's own monotonic clock. A stored time is a wall-clock
 * time, perhaps of another agent's clock. It is converted once, when this process first sees it, so that a later jump
 * of the wall clock changes nothing.
 */
export class StoredTimes {
  #deadline: { key: string; atMs: number } | undefined;
  #intent: { key: string; atMs: number; seenAtMs: number } | undefined;
  #cycle: { key: string; seenAtMs: number } | undefined;

  /** The time that is left in the present state. */
  remainingMs(
    state: State,
    strategy: BoundedStrategy,
    { diagnostics }: Pick<BareMetalRemediationStatus, "diagnostics">,
    now: Now,
  ): number {
    if (!("attempt" in state) || state.attempt === undefined) return Infinity;
    const key = `${state.name} ${state.attempt.deadlineMs}`;
    if (this.#deadline?.key !== key) {
      const longestMs = Math.max(
        strategy.timeoutMs,
        strategy.powerOffTimeoutMs,
        strategy.powerOnTimeoutMs,
        strategy.drainTimeoutMs,
      );
      // If the clocks of two leaders differ, the power-off is still not delayed for longer than the strategy says.
      const dumpMs = strategy.diagnosticsTimeoutMs + strategy.powerOffTimeoutMs;
      const isDumping = state.name === "Verifying" && diagnostics !== undefined;
      const mostMs = isDumping ? dumpMs : longestMs + DEVICE_FINAL_RETRY_MS;
      // An undo whose deadline passed while no agent ran still gets time to power the host on.
      const leastMs = state.name === "Undoing" ? UNDO_MIN_MS : 0;
      const storedMs = state.attempt.deadlineMs - now.epochMs;
      const leftMs = Math.min(Math.max(storedMs, leastMs), mostMs);
      this.#deadline = { key, atMs: now.monotonicMs + leftMs };
    }
    return this.#deadline.atMs - now.monotonicMs;
  }

  /**
   * When the intent of the last order was stored. A time in the future counts as now. The process that stored it may
   * have had another clock, so only `intentSeenAtMs` is certain: the intent was stored no later.
   */
  intentTimes(state: State, { epochMs, monotonicMs }: Now): Pick<Snapshot, "intentAtMs" | "intentSeenAtMs"> {
    if (!("attempt" in state) || state.attempt === undefined) {
      return { intentAtMs: -Infinity, intentSeenAtMs: -Infinity };
    }
    const { id, action, actionAtMs } = state.attempt;
    const key = `${id} ${action} ${actionAtMs}`;
    if (this.#intent?.key !== key) {
      this.#intent = { key, atMs: monotonicMs - Math.max(epochMs - actionAtMs, 0), seenAtMs: monotonicMs };
    }
    return { intentAtMs: this.#intent.atMs, intentSeenAtMs: this.#intent.seenAtMs };
  }

  /** When this process first saw that an AC cycle was ordered; -Infinity if none was. */
  cycleSeenAtMs({ acCycle }: Pick<BareMetalRemediationStatus, "acCycle">, { monotonicMs }: Now): number {
    if (acCycle === undefined) return -Infinity;
    const key = `${acCycle.attemptID} ${acCycle.orderedAt}`;
    if (this.#cycle?.key !== key) this.#cycle = { key, seenAtMs: monotonicMs };
    return this.#cycle.seenAtMs;
  }
}
