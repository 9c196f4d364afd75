import type { Clock } from "../runtime/clock.ts";

/** Remembers what happened a short time ago, by key. */
export class Recent {
  readonly #clock: Clock;
  readonly #forMs: number;
  /** On the monotonic clock, the longest ago first. */
  readonly #atMs = new Map<string, number>();

  constructor(clock: Clock, forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
  }

  note(key: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#atMs.delete(key);
    this.#atMs.set(key, nowMs);
    for (const [other, atMs] of this.#atMs) {
      if (nowMs - atMs < this.#forMs) break;
      this.#atMs.delete(other);
    }
  }

  forget(key: string): void {
    this.#atMs.delete(key);
  }

  isRecent(key: string): boolean {
    const atMs = this.#atMs.get(key);
    return atMs !== undefined && this.#clock.monotonicMs() - atMs < this.#forMs;
  }
}
