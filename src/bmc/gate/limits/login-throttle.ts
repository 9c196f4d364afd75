import type { Clock } from "../../../runtime/clock.ts";

/** How many logins start in one iteration of the event loop. */
const STARTS_MAX = 4;

/**
 * Starts a few logins in each iteration of the event loop, in the order of arrival. When hundreds of logins start at
 * once, this process is the bottleneck. The logins in progress then finish first and free their memory, instead of all
 * logins finishing late. A login that waits for its BMC does not delay others.
 */
export class LoginThrottle {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** How many logins have started in this iteration. */
  #started = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the caller may start. */
  start(): Promise<void> {
    if (this.#started === STARTS_MAX) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#count();
    return Promise.resolve();
  }

  #count(): void {
    if (this.#started === 0) this.#clock.schedule(0, () => this.#nextIteration());
    this.#started += 1;
  }

  #nextIteration(): void {
    this.#started = 0;
    for (const next of this.#waiting.splice(0, STARTS_MAX)) {
      this.#count();
      next();
    }
  }
}
