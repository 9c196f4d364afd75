import type { Clock } from "../../runtime/clock.ts";

/** At most so many permits in any second. */
export class RatePermits {
  readonly #clock: Clock;
  readonly #perSecond: number;
  #takenMs: number[] = [];

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Takes a permit. @returns whether there was one. */
  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    this.#takenMs = this.#takenMs.filter((atMs) => nowMs - atMs < 1_000);
    if (this.#takenMs.length >= this.#perSecond) return false;
    this.#takenMs.push(nowMs);
    return true;
  }
}
