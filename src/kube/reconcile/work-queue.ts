import type { Clock, Timer } from "../../runtime/clock.ts";
import { abortReason } from "../../runtime/clock.ts";

/** The longest delay. A longer one is shortened to this, because timers of Node run for at most 24.8 days. */
export const DELAY_MAX_MS = 24 * 60 * 60_000;

/** Timers of Node have whole milliseconds, so one may run up to this much too early. */
const EARLY_MAX_MS = 1;

/**
 * The keys that wait to be worked on.
 *
 * A key is in the queue at most once, with the earliest time that a caller asked for. A key that was taken is not given
 * out again before `done`. If it is added in the meantime, it is due again after `done`, so that no change during the
 * work is missed.
 */
export class WorkQueue {
  readonly #clock: Clock;
  /** Due and not taken, in the order in which they became due. */
  readonly #ready = new Set<string>();
  /** Taken and not done. */
  readonly #active = new Set<string>();
  /** Became due while active. */
  readonly #again = new Set<string>();
  /** The times at which keys become due. One timer serves all keys, because a timer needs more memory than a key. */
  readonly #delayed = new Map<string, number>();
  #timer: { dueMs: number; timer: Timer } | undefined;
  #wake: (() => void) | undefined;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The number of keys that are due, including active keys that became due again. */
  get depth(): number {
    return this.#ready.size + this.#again.size;
  }

  /** The number of keys that are not due yet. */
  get delayedCount(): number {
    return this.#delayed.size;
  }

  /** Makes `key` due `delayMs` from now, unless it is already due earlier. */
  add(key: string, delayMs = 0): void {
    if (this.#closed || this.#ready.has(key) || this.#again.has(key)) return;
    const waitingMs = this.#delayed.get(key);
    if (delayMs <= 0) {
      this.#delayed.delete(key);
      this.#makeReady(key);
      return;
    }
    const dueMs = this.#clock.monotonicMs() + Math.min(delayMs, DELAY_MAX_MS);
    if (waitingMs !== undefined && waitingMs <= dueMs) return;
    this.#delayed.set(key, dueMs);
    this.#wakeAt(dueMs);
  }

  /** Drops a key that was not taken. */
  remove(key: string): void {
    this.#delayed.delete(key);
    this.#ready.delete(key);
    this.#again.delete(key);
  }

  /** Resolves with the next due key. The caller must call `done` for it. Only one call at a time. */
  async take(signal: AbortSignal): Promise<string> {
    for (;;) {
      if (signal.aborted) throw abortReason(signal);
      for (const key of this.#ready) {
        this.#ready.delete(key);
        this.#active.add(key);
        return key;
      }
      await this.#woken(signal);
    }
  }

  /** Ends the work on a taken key. */
  done(key: string): void {
    this.#active.delete(key);
    if (this.#again.delete(key)) this.#makeReady(key);
  }

  /** Drops all keys, and accepts no more. */
  close(): void {
    this.#closed = true;
    this.#timer?.timer.cancel();
    this.#delayed.clear();
    this.#ready.clear();
    this.#again.clear();
  }

  #wakeAt(dueMs: number): void {
    if (this.#timer !== undefined && this.#timer.dueMs <= dueMs) return;
    this.#timer?.timer.cancel();
    const delayMs = Math.max(0, dueMs - this.#clock.monotonicMs());
    this.#timer = { dueMs, timer: this.#clock.schedule(delayMs, () => this.#releaseDue()) };
  }

  #releaseDue(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    let nextMs = Infinity;
    // `forEach` makes no array for each of thousands of keys.
    this.#delayed.forEach((dueMs, key) => {
      if (dueMs - nowMs < EARLY_MAX_MS) {
        this.#delayed.delete(key);
        this.#makeReady(key);
      } else nextMs = Math.min(nextMs, dueMs);
    });
    if (nextMs < Infinity) this.#wakeAt(nextMs);
  }

  #makeReady(key: string): void {
    if (this.#closed) return;
    if (this.#active.has(key)) {
      this.#again.add(key);
      return;
    }
    this.#ready.add(key);
    this.#wake?.();
  }

  #woken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wake = undefined;
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#wake = wake;
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
