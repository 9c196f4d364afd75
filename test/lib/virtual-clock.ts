import type { Clock, Timer } from "../../src/runtime/clock.ts";

/** Turns of the event loop for work in the process before time advances. */
const TURNS = 3;

interface Entry {
  atMs: number;
  /** Timers with the same time run in the order in which they were set. */
  order: number;
  callback: (() => void) | undefined;
}

/** A clock that advances only when a test says so. Timers run in the order of their time. */
export class VirtualClock implements Clock {
  #elapsedMs = 0;
  #orders = 0;
  #pending = 0;
  readonly #startMs: number;
  readonly #turns: number;
  /** A binary heap with the earliest timer first. */
  readonly #heap: Entry[] = [];
  /** Called when all effects of a timer have settled. */
  afterStep: () => void = () => undefined;

  /** @param turns turns of the event loop between two timers. One is enough if all code waits only for promises. */
  constructor(startMs = Date.UTC(2026, 0, 1), turns = TURNS) {
    this.#startMs = startMs;
    this.#turns = turns;
  }

  nowMs(): number {
    return this.#startMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    this.#orders += 1;
    const entry: Entry = { atMs: this.#elapsedMs + Math.max(0, delayMs), order: this.#orders, callback };
    this.#pending += 1;
    push(this.#heap, entry);
    return {
      cancel: () => {
        if (entry.callback === undefined) return;
        entry.callback = undefined;
        this.#pending -= 1;
      },
    };
  }

  /** Timers that have not run yet. */
  get pending(): number {
    return this.#pending;
  }

  /** Lets `durationMs` pass, and waits until all effects in this process have settled. */
  async advance(durationMs: number): Promise<void> {
    const untilMs = this.#elapsedMs + durationMs;
    await this.#settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      const { callback } = next;
      pop(this.#heap);
      if (callback === undefined) continue;
      next.callback = undefined;
      this.#pending -= 1;
      this.#elapsedMs = next.atMs;
      callback();
      await this.#settle();
    }
    this.#elapsedMs = untilMs;
    await this.#settle();
  }

  async #settle(): Promise<void> {
    await settle(this.#turns);
    this.afterStep();
  }

  #next(untilMs: number): Entry | undefined {
    const first = this.#heap[0];
    return first !== undefined && first.atMs <= untilMs ? first : undefined;
  }
}

/** Lets all code run that waits only for promises. */
export async function settle(turns = TURNS): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.push(entry) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(entry, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = entry;
}

/** Removes the first entry. */
function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    const [left, right] = [heap[below], heap[below + 1]];
    if (left === undefined) break;
    let least = left;
    if (right !== undefined && isBefore(right, left)) {
      least = right;
      below += 1;
    }
    if (!isBefore(least, last)) break;
    heap[at] = least;
    at = below;
  }
  heap[at] = last;
}
