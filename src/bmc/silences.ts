import type { Clock } from "../runtime/clock.ts";

/**
 * For so long after a BMC may have restarted no Off of it is believed, unless it has shown its host on since: some show Off
 * until they have looked at the host.
 */
export const BMC_SETTLE_MS = 30_000;

/**
 * When BMCs last were silent, or had forgotten us: each may have restarted then. All drivers of a process share it, since
 * whoever has just failed to reach a BMC opens another driver to try again.
 */
export class Silences {
  readonly #clock: Clock;
  /** On the monotonic clock, the longest ago first. */
  readonly #atMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(bmc: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#atMs.delete(bmc);
    this.#atMs.set(bmc, nowMs);
    for (const [other, atMs] of this.#atMs) {
      if (nowMs - atMs < BMC_SETTLE_MS) break;
      this.#atMs.delete(other);
    }
  }

  /** Tells that the BMC has shown its host on: it has looked at it. */
  forget(bmc: string): void {
    this.#atMs.delete(bmc);
  }

  /** Whether the BMC may have restarted so short a time ago that its Off is not to be believed. */
  isRecent(bmc: string): boolean {
    const atMs = this.#atMs.get(bmc);
    return atMs !== undefined && this.#clock.monotonicMs() - atMs < BMC_SETTLE_MS;
  }
}
