import type { Clock, Timer } from "../../src/runtime/clock.ts";

/** The difference between the clock of an agent and that of the world. */
export interface ClockFault {
  /** By how many milliseconds its wall clock is ahead. */
  aheadMs?: number;
  /** Its speed: with 2, one second of the world is two seconds of the agent. */
  rate?: number;
}

/**
 * The resolution of timers. At another rate than the world's, a rounding error may remain when a time is reached. Code
 * that waits for the rest would otherwise loop without any progress of time.
 */
const TICK_MS = 0.001;

/** A timer of the process. Its due time is on the monotonic clock of the process. */
interface Pending {
  dueMs: number;
  callback: () => void;
  world: Timer | undefined;
}

/** The clock of one process. It may be ahead or behind, fast or slow, and it stops with the process or its machine. */
export class AgentClock implements Clock {
  readonly #world: Clock;
  readonly #rate: number;
  readonly #startMs: number;
  #aheadMs: number;
  #isStopped = false;
  /** Timers that became due while the process was stopped, in order. */
  #held: Pending[] = [];
  readonly #pending = new Set<Pending>();
  /** World time for which the machine was suspended before, */
  #asleepMs = 0;
  /** and the start of the present suspension; undefined while it runs. */
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

  /** Moves the wall clock. */
  jump(byMs: number): void {
    this.#aheadMs += byMs;
  }

  /** Stops timers while time continues, as when a signal stops the process. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Suspends the machine. As on Linux, the monotonic clock stops, and timers make no progress. The wall clock is right
   * again when the machine resumes.
   */
  suspendMachine(): void {
    this.#isStopped = true;
    this.#asleepSinceMs = this.#world.monotonicMs();
    for (const { world } of this.#pending) world?.cancel();
  }

  /**
   * Resumes the process. Timers that became due run now. Timers of a suspended machine run after their remaining time.
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
    // While the machine is suspended, timers make no progress. This is called again when it resumes.
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
