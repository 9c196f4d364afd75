import type { Clock, Timer } from "../../runtime/clock.ts";
import { abortReason } from "../../runtime/clock.ts";

/** A moment by both clocks of this machine. */
export interface Moment {
  monotonicMs: number;
  epochMs: number;
}

export interface TermBounds {
  /** How long a term lasts from its last renewal. */
  renewDeadlineMs: number;
  /** By how much the wall clock may have run ahead of the monotonic one since then. */
  driftMaxMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), epochMs: clock.nowMs() };
}

/**
 * Whether a term that was renewed then is over now: by the monotonic clock, or since the wall clock has run ahead of
 * that.
 *
 * While a machine is suspended, or a virtual one is paused, Linux' CLOCK_MONOTONIC and all timers stand still: by them
 * no time has passed, and meanwhile another may have taken the lease. The wall clock shows it once it is right again. A
 * wall clock that was set forward looks the same, and costs the lease, which is safe. One that was set back proves
 * nothing and extends nothing. How far it may run ahead is less than the time that others wait beyond our deadline, so
 * what is not noticed does no harm to the lease; and it is little, since also readings of power are as old as the
 * monotonic clock says.
 */
export function isTermOver(since: Moment, now: Moment, { renewDeadlineMs, driftMaxMs }: TermBounds): boolean {
  const elapsedMs = now.monotonicMs - since.monotonicMs;
  const driftMs = now.epochMs - since.epochMs - elapsedMs;
  return elapsedMs >= renewDeadlineMs || driftMs > driftMaxMs;
}

/** The lease is not ours any more, or may soon belong to another process. */
export class LeadershipLostError extends Error {
  override readonly name = "LeadershipLostError";
}

/** One term of leadership: its deadline, and the three ways it ends (stop, loss, the work's own end). */
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

  /** Whether the lease cannot belong to another process yet. */
  get held(): boolean {
    return this.lost === undefined && !isTermOver(this.#renewed, momentOf(this.#clock), this.#bounds);
  }

  /** When the lease counts as lost, on the monotonic clock. */
  get deadlineMs(): number {
    return this.#renewed.monotonicMs + this.#bounds.renewDeadlineMs;
  }

  /** Aborts on stop and on loss. */
  get signal(): AbortSignal {
    return this.#leading.signal;
  }

  /** Aborts when renewals are to end: on loss, and once the work has ended. */
  get renewing(): AbortSignal {
    return this.#renewing.signal;
  }

  /** Takes a renewal that succeeded. It does not bring back a term that was over before its answer came. */
  renewed(sent: Moment): void {
    if (!this.goesOn()) return;
    this.#renewed = sent;
    this.#deadline.cancel();
    this.#deadline = this.#armed();
  }

  /** Whether the term goes on; one that its clocks say is over is lost by this. */
  goesOn(): boolean {
    if (this.lost === undefined && !this.held) {
      this.lose(
        "its time is over: the machine was suspended, its wall clock was set forward, or the process was stopped",
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
   * Resolves when the work has ended. @throws what the work throws of itself; LeadershipLostError on loss, and if the
   * work is still going on one patience after it was asked to stop.
   */
  async settled(work: Promise<void>, patience: { stopPatienceMs: number; lossPatienceMs: number }): Promise<void> {
    const overdue = this.#overdue(patience);
    try {
      await Promise.race([work, overdue.promise]);
    } catch (error) {
      // What is thrown because of our own signal is the end that was asked for.
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

  /** Rejects when the work has had its patience. */
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
