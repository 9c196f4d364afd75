import type { Clock } from "../runtime/clock.ts";

/** How many may begin in one turn of the event loop. */
const BEGINNINGS_MAX = 4;

/**
 * Lets work begin a few pieces at a time, some in each turn of the event loop, in the order of arrival. Where hundreds begin
 * at once and this process is what they wait for, those under way go first: they end one after the other, and not all of them
 * late, each with its memory held until then. Work that only waits does not delay other work.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** How many have begun in this turn. */
  #begun = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the caller may begin. */
  begin(): Promise<void> {
    if (this.#begun === BEGINNINGS_MAX) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#count();
    return Promise.resolve();
  }

  #count(): void {
    if (this.#begun === 0) this.#clock.schedule(0, () => this.#nextTurn());
    this.#begun += 1;
  }

  #nextTurn(): void {
    this.#begun = 0;
    for (const next of this.#waiting.splice(0, BEGINNINGS_MAX)) {
      this.#count();
      next();
    }
  }
}
