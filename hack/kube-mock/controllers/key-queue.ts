import type { Clock, Timer } from "../../../src/runtime/clock.ts";
import { ApiError } from "../api-error.ts";

const RETRY_MS = 1_000;

/**
 * Runs `reconcile` for keys on the clock. Several requests for a key are combined into one. `reconcile` reads and
 * writes the store synchronously, so no other write can come between.
 */
export class KeyQueue {
  readonly #clock: Clock;
  readonly #reconcile: (key: string) => number | undefined;
  readonly #due = new Map<string, { atMs: number; timer: Timer }>();

  /** @param reconcile returns after how many milliseconds the key is to be reconciled again, if at all. */
  constructor(clock: Clock, reconcile: (key: string) => number | undefined) {
    this.#clock = clock;
    this.#reconcile = reconcile;
  }

  /** If the key is already due earlier, that time stays. */
  enqueue(key: string, delayMs: number): void {
    const atMs = this.#clock.monotonicMs() + delayMs;
    const known = this.#due.get(key);
    if (known !== undefined && known.atMs <= atMs) return;
    known?.timer.cancel();
    this.#due.set(key, { atMs, timer: this.#clock.schedule(delayMs, () => this.#run(key)) });
  }

  stop(): void {
    for (const { timer } of this.#due.values()) timer.cancel();
    this.#due.clear();
  }

  #run(key: string): void {
    this.#due.delete(key);
    const againMs = this.#attempt(key);
    if (againMs !== undefined) this.enqueue(key, againMs);
  }

  #attempt(key: string): number | undefined {
    try {
      return this.#reconcile(key);
    } catch (error) {
      // A refused write may succeed later, for example when a namespace is gone or a name is free.
      if (error instanceof ApiError) return RETRY_MS;
      throw error;
    }
  }
}

/** Calls `sweep` every `periodMs`, for the first time after one period. */
export function every(clock: Clock, periodMs: number, sweep: () => void): () => void {
  let timer = clock.schedule(periodMs, tick);
  function tick(): void {
    timer = clock.schedule(periodMs, tick);
    sweep();
  }
  return () => timer.cancel();
}
