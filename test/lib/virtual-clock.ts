import type { Clock, Timer } from "../../src/runtime/clock.ts";

/** Turns of the event loop that work in the process gets before time goes on. */
const TURNS = 3;

/** A clock that stands still until it is told to go on. Timers run in the order of their time. */
export class VirtualClock implements Clock {
  #elapsedMs = 0;
  readonly #startMs: number;
  readonly #timers = new Set<{ atMs: number; callback: () => void }>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#startMs = startMs;
  }

  nowMs(): number {
    return this.#startMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const timer = { atMs: this.#elapsedMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** Timers that have not run yet. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets `durationMs` pass, and whatever that sets off in this process settle. */
  async advance(durationMs: number): Promise<void> {
    const untilMs = this.#elapsedMs + durationMs;
    await settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#elapsedMs = next.atMs;
      this.#timers.delete(next);
      next.callback();
      await settle();
    }
    this.#elapsedMs = untilMs;
    await settle();
  }

  #next(untilMs: number): { atMs: number; callback: () => void } | undefined {
    let next: { atMs: number; callback: () => void } | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= untilMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }
}

/** Lets everything that waits for promises alone run on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
