import type { Clock } from "../../runtime/clock.ts";

/** A token bucket: at most `burst` starts at once, and `perSecond` a second in the long run. */
export class StartRate {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledMs: number;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledMs = clock.monotonicMs();
  }

  /** Takes one start. @returns how long to wait before it, in milliseconds; 0 for no wait. */
  takeMs(): number {
    const nowMs = this.#clock.monotonicMs();
    const earned = ((nowMs - this.#filledMs) / 1_000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst, this.#tokens + earned) - 1;
    this.#filledMs = nowMs;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1_000;
  }
}
