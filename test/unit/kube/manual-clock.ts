import type { Clock, Timer } from "../../../src/runtime/clock.ts";

/** A clock that stands still until it is told to go on. Wall clock and monotonic clock run together. */
export class ManualClock implements Clock {
  #nowMs = 0;
  #nextId = 0;
  readonly #timers = new Map<number, { dueMs: number; callback: () => void }>();

  nowMs(): number {
    return 1_800_000_000_000 + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const id = this.#nextId++;
    this.#timers.set(id, { dueMs: this.#nowMs + Math.max(0, delayMs), callback });
    return { cancel: () => this.#timers.delete(id) };
  }

  get pendingCount(): number {
    return this.#timers.size;
  }

  /** Goes on by `byMs`, firing what comes due in order and letting all promises settle in between. */
  async advance(byMs: number): Promise<void> {
    const targetMs = this.#nowMs + byMs;
    await settle();
    for (;;) {
      const next = [...this.#timers].sort(([, a], [, b]) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next[1].dueMs > targetMs) break;
      const [id, { dueMs, callback }] = next;
      this.#timers.delete(id);
      this.#nowMs = Math.max(this.#nowMs, dueMs);
      callback();
      await settle();
    }
    this.#nowMs = targetMs;
    await settle();
  }
}

/** Lets everything that waits for promises alone run on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
