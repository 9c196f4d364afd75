import type { Clock, Timer } from "../../runtime/clock.ts";
import { abortReason } from "../../runtime/clock.ts";

/**
 * A key is looked at again after this long at the latest, however far its delay points: Node's timers end at 24.8 days.
 */
export const DELAY_MAX_MS = 24 * 60 * 60_000;

/** Node's timers have whole milliseconds: one may run this much before its time. */
const EARLY_MAX_MS = 1;

/**
 * The keys that wait to be worked on.
 *
 * A key waits at most once, at the earliest time that any caller asked for. While it is being worked on it is not given
 * out again; a key added meanwhile comes back after `done`, so nothing that changed during the work is missed.
 */
export class WorkQueue {
  readonly #clock: Clock;
  /** Due and not being worked on, in the order in which they came due. */
  readonly #ready = new Set<string>();
  /** Given out and not yet done. */
  readonly #active = new Set<string>();
  /** Came due while active. */
  readonly #again = new Set<string>();
  /** When keys come due. One timer serves all of them: a timer each takes more memory than the key. */
  readonly #delayed = new Map<string, number>();
  #timer: { dueMs: number; timer: Timer } | undefined;
  #wake: (() => void) | undefined;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys that are due, those that came due again while being worked on included. */
  get depth(): number {
    return this.#ready.size + this.#again.size;
  }

  /** Keys that wait for their time. */
  get delayedCount(): number {
    return this.#delayed.size;
  }

  /** Makes `key` due `delayMs` from now, unless it is due earlier already. */
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

  /** Drops a key that was added and not given out. */
  remove(key: string): void {
    this.#delayed.delete(key);
    this.#ready.delete(key);
    this.#again.delete(key);
  }

  /** Resolves with the next due key, which is the caller's until `done`. One caller at a time. */
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

  /** Gives a taken key back. */
  done(key: string): void {
    this.#active.delete(key);
    if (this.#again.delete(key)) this.#makeReady(key);
  }

  /** Forgets all that waits and takes nothing more. */
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
    for (const [key, dueMs] of this.#delayed) {
      if (dueMs - nowMs < EARLY_MAX_MS) {
        this.#delayed.delete(key);
        this.#makeReady(key);
      } else nextMs = Math.min(nextMs, dueMs);
    }
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
