import type { Clock, Timer } from "../../src/runtime/clock.ts";

/** How an agent's clock differs from the world's. */
export interface ClockFault {
  /** How far its wall clock is ahead. */
  aheadMs?: number;
  /** How fast it goes: 2 makes a second of the world two. */
  rate?: number;
}

interface Held {
  callback: (() => void) | undefined;
}

/** The clock of one process: ahead or behind, fast or slow, and stopped while the process is. */
export class AgentClock implements Clock {
  readonly #world: Clock;
  readonly #rate: number;
  readonly #startMs: number;
  #aheadMs: number;
  #isStopped = false;
  #held: Held[] = [];

  constructor(world: Clock, { aheadMs = 0, rate = 1 }: ClockFault = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#aheadMs = aheadMs;
    this.#startMs = world.nowMs() - world.monotonicMs();
  }

  nowMs(): number {
    return this.#startMs + Math.round(this.monotonicMs()) + this.#aheadMs;
  }

  monotonicMs(): number {
    return this.#world.monotonicMs() * this.#rate;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const held: Held = { callback };
    const run = (): void => {
      const { callback } = held;
      held.callback = undefined;
      callback?.();
    };
    const timer = this.#world.schedule(Math.max(0, delayMs) / this.#rate, () => {
      if (this.#isStopped) this.#held.push(held);
      else run();
    });
    return {
      cancel: () => {
        held.callback = undefined;
        timer.cancel();
      },
    };
  }

  /** The wall clock is set anew. */
  jump(byMs: number): void {
    this.#aheadMs += byMs;
  }

  /** No timer runs from now on, though time goes on, as when the process is stopped by a signal. */
  stop(): void {
    this.#isStopped = true;
  }

  /** The process goes on: the timers that became due run now. */
  resume(): void {
    this.#isStopped = false;
    const held = this.#held;
    this.#held = [];
    for (const { callback } of held) callback?.();
  }
}
