import type { Clock, Timer } from "../../src/runtime/clock.ts";

/** How an agent's clock differs from the world's. */
export interface ClockFault {
  /** How far its wall clock is ahead. */
  aheadMs?: number;
  /** How fast it goes: 2 makes a second of the world two. */
  rate?: number;
}

/**
 * No timer is finer. At another rate than the world's a time may be reached but for a rounding error: code that waits
 * for the rest would otherwise wait again and again, and no time would pass.
 */
const TICK_MS = 0.001;

/** A timer of the process, due at a time of its own monotonic clock. */
interface Pending {
  dueMs: number;
  callback: () => void;
  world: Timer | undefined;
}

/** The clock of one process: ahead or behind, fast or slow, stopped while the process or its machine is. */
export class AgentClock implements Clock {
  readonly #world: Clock;
  readonly #rate: number;
  readonly #startMs: number;
  #aheadMs: number;
  #isStopped = false;
  /** Timers that became due while the process was stopped, in that order. */
  #held: Pending[] = [];
  readonly #pending = new Set<Pending>();
  /** World time for which the machine was suspended so far, */
  #asleepMs = 0;
  /** and since when it is; undefined while it runs. */
  #asleepSinceMs: number | undefined;

  constructor(world: Clock, { aheadMs = 0, rate = 1 }: ClockFault = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#aheadMs = aheadMs;
    this.#startMs = world.nowMs() - world.monotonicMs();
  }

  nowMs(): number {
    return this.#startMs + Math.round(this.#world.monotonicMs() * this.#rate) + this.#aheadMs;
  }

  monotonicMs(): number {
    return ((this.#asleepSinceMs ?? this.#world.monotonicMs()) - this.#asleepMs) * this.#rate;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const leastMs = delayMs > 0 ? TICK_MS : 0;
    const pending: Pending = { dueMs: this.monotonicMs() + Math.max(leastMs, delayMs), callback, world: undefined };
    this.#pending.add(pending);
    this.#arm(pending);
    return {
      cancel: () => {
        this.#pending.delete(pending);
        pending.world?.cancel();
      },
    };
  }

  /** The wall clock is set to another time. */
  jump(byMs: number): void {
    this.#aheadMs += byMs;
  }

  /** No timer runs from now on, though time goes on, as when the process is stopped by a signal. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * The machine is suspended: the monotonic clock stands still, as Linux' does, and no timer comes closer to its end.
   * The wall clock is right again as soon as the machine goes on.
   */
  suspendMachine(): void {
    this.#isStopped = true;
    this.#asleepSinceMs = this.#world.monotonicMs();
    for (const { world } of this.#pending) world?.cancel();
  }

  /**
   * The process goes on: the timers that became due run now, those of a suspended machine when what was left of them is
   * over.
   */
  resume(): void {
    this.#isStopped = false;
    const held = this.#held;
    this.#held = [];
    for (const pending of held) this.#run(pending);
    if (this.#asleepSinceMs === undefined) return;
    this.#asleepMs += this.#world.monotonicMs() - this.#asleepSinceMs;
    this.#asleepSinceMs = undefined;
    for (const pending of this.#pending) this.#arm(pending);
  }

  #arm(pending: Pending): void {
    // Called when the machine goes on; until then nothing brings a timer closer.
    if (this.#asleepSinceMs !== undefined) return;
    const leftMs = Math.max(0, pending.dueMs - this.monotonicMs());
    pending.world = this.#world.schedule(leftMs / this.#rate, () => {
      if (this.#isStopped) this.#held.push(pending);
      else this.#run(pending);
    });
  }

  #run(pending: Pending): void {
    if (this.#pending.delete(pending)) pending.callback();
  }
}
