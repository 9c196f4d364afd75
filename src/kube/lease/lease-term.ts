import type { Clock, Timer } from "../../runtime/clock.ts";
import { abortReason } from "../../runtime/clock.ts";

/** A moment on both clocks of this machine. */
export interface Moment {
  monotonicMs: number;
  epochMs: number;
}

export interface TermBounds {
  /** How long a term lasts from its last renewal. */
  renewDeadlineMs: number;
  /** How far the wall clock may have run ahead of the monotonic clock since then. */
  driftMaxMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), epochMs: clock.nowMs() };
}

/**
 * Whether a term that was last renewed at `since` is over: by the monotonic clock, or because the wall clock has run
 * ahead of it.
 *
 * While a machine is suspended, or a virtual machine is paused, CLOCK_MONOTONIC of Linux and all timers stop, and
 * another agent may take the lease. The wall clock shows this when it is correct again. If the wall clock was set
 * forward, the agent gives up the lease although it need not, which is safe. If it was set back, the term neither ends
 * nor becomes longer. `driftMaxMs` is less than the time that other candidates wait after this agent's deadline, so a
 * smaller drift does not endanger the lease. It is short, because the ages of power readings are also measured on the
 * monotonic clock.
 */
export function isTermOver(since: Moment, now: Moment, { renewDeadlineMs, driftMaxMs }: TermBounds): boolean {
  const elapsedMs = now.monotonicMs - since.monotonicMs;
  const driftMs = now.epochMs - since.epochMs - elapsedMs;
  return elapsedMs >= renewDeadlineMs || driftMs > driftMaxMs;
}

/** This process no longer holds the lease, or another one may soon take it. */
export class LeadershipLostError extends Error {
  override readonly name = "LeadershipLostError";
}

/** One term of leadership. It ends when the agent is stopped, when the lease is lost, or when the work ends. */
export class Term {
  readonly #clock: Clock;
  readonly #parent: AbortSignal;
  readonly #leading = new AbortController();
  readonly #renewing = new AbortController();
  readonly #onStop: () => void;
  readonly #bounds: TermBounds;
  #deadline: Timer;
  /** When the last renewal was sent. */
  #renewed: Moment;
  lost: LeadershipLostError | undefined;
  workHasEnded = false;

  constructor(clock: Clock, heldFrom: Moment, bounds: TermBounds, parent: AbortSignal) {
    this.#clock = clock;
    this.#parent = parent;
    this.#bounds = bounds;
    this.#renewed = heldFrom;
    this.#deadline = this.#armed();
    this.#onStop = () => this.#leading.abort(abortReason(parent));
    if (parent.aborted) this.#onStop();
    else parent.addEventListener("abort", this.#onStop, { once: true });
  }

  /** Whether no other process can hold the lease yet. */
  get held(): boolean {
    return this.lost === undefined && !isTermOver(this.#renewed, momentOf(this.#clock), this.#bounds);
  }

  /** When the lease counts as lost, on the monotonic clock. */
  get deadlineMs(): number {
    return this.#renewed.monotonicMs + this.#bounds.renewDeadlineMs;
  }

  /** Aborts when the agent is stopped or the lease is lost. */
  get signal(): AbortSignal {
    return this.#leading.signal;
  }

  /** Aborts when renewals must end: when the lease is lost or the work has ended. */
  get renewing(): AbortSignal {
    return this.#renewing.signal;
  }

  /** Extends the term by a successful renewal, unless the term was over before the answer arrived. */
  renewed(sent: Moment): void {
    if (!this.goesOn()) return;
    this.#renewed = sent;
    this.#deadline.cancel();
    this.#deadline = this.#armed();
  }

  /** Whether the term continues. If it is over by the clocks, this call marks the lease as lost. */
  goesOn(): boolean {
    if (this.lost === undefined && !this.held) {
      this.lose(
        "the lease term is over, because the machine was suspended, its wall clock was set forward, or the process was stopped",
      );
    }
    return this.lost === undefined;
  }

  lose(reason: string): void {
    if (this.lost !== undefined || this.workHasEnded) return;
    this.lost = new LeadershipLostError(`stopped leading: ${reason}`);
    this.#leading.abort(this.lost);
    this.#renewing.abort(this.lost);
  }

  workEnded(): void {
    this.workHasEnded = true;
    this.#renewing.abort(new Error("the work under the lease has ended"));
  }

  /**
   * Resolves when the work has ended. @throws what the work throws, unless it throws because of the abort;
   * LeadershipLostError if the lease was lost, or if the work does not end in time after the abort.
   */
  async settled(work: Promise<void>, patience: { stopPatienceMs: number; lossPatienceMs: number }): Promise<void> {
    const overdue = this.#overdue(patience);
    try {
      await Promise.race([work, overdue.promise]);
    } catch (error) {
      // An error after `signal` has aborted is the expected end of the work.
      if (!this.signal.aborted || error instanceof LeadershipLostError) throw error;
    } finally {
      overdue.cancel();
    }
    if (this.lost !== undefined) throw this.lost;
  }

  end(): void {
    this.#deadline.cancel();
    this.#parent.removeEventListener("abort", this.#onStop);
    this.#renewing.abort(new Error("the term has ended"));
  }

  /** Rejects if the work does not end in time after `signal` has aborted. */
  #overdue(patience: { stopPatienceMs: number; lossPatienceMs: number }): { promise: Promise<never>; cancel(): void } {
    const { promise, reject } = Promise.withResolvers<never>();
    let timer: Timer | undefined;
    const arm = (): void => {
      const patienceMs = this.lost === undefined ? patience.stopPatienceMs : patience.lossPatienceMs;
      timer = this.#clock.schedule(patienceMs, () =>
        reject(this.lost ?? new LeadershipLostError(`the work under the lease did not end within ${patienceMs} ms`)),
      );
    };
    if (this.signal.aborted) arm();
    else this.signal.addEventListener("abort", arm, { once: true });
    const cancel = (): void => {
      timer?.cancel();
      this.signal.removeEventListener("abort", arm);
    };
    return { promise, cancel };
  }

  #armed(): Timer {
    const leftMs = Math.max(0, this.deadlineMs - this.#clock.monotonicMs());
    return this.#clock.schedule(leftMs, () => this.lose("the lease could not be renewed in time"));
  }
}
