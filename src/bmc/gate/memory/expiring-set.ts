import type { Clock } from "../../../runtime/clock.ts";

/** A set of keys, each of which expires a fixed time after it was last added. */
export class ExpiringSet {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** When each key was added, on the monotonic clock, the oldest first. */
  readonly #addedAtMs = new Map<string, number>();

  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /** Adds the key, or restarts its time. */
  add(key: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#addedAtMs.delete(key);
    this.#addedAtMs.set(key, nowMs);
    for (const [other, addedAtMs] of this.#addedAtMs) {
      if (nowMs - addedAtMs < this.#ttlMs) break;
      this.#addedAtMs.delete(other);
    }
  }

  delete(key: string): void {
    this.#addedAtMs.delete(key);
  }

  /** Whether the key was added and has not expired. */
  has(key: string): boolean {
    const addedAtMs = this.#addedAtMs.get(key);
    return addedAtMs !== undefined && this.#clock.monotonicMs() - addedAtMs < this.#ttlMs;
  }
}
