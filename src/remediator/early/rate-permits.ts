import type { Clock } from "../../runtime/clock.ts";

/** Gives at most `perSecond` permits in any second. */
export class RatePermits {
  readonly #clock: Clock;
  readonly #perSecond: number;
  #takenMs: number[] = [];

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Takes `count` permits, or none. @returns whether there were enough. */
  take(count = 1): boolean {
    const nowMs = this.#clock.monotonicMs();
    this.#takenMs = this.#takenMs.filter((atMs) => nowMs - atMs < 1_000);
    if (this.#takenMs.length + count > this.#perSecond) return false;
    for (let taken = 0; taken < count; taken += 1) this.#takenMs.push(nowMs);
    return true;
  }
}
