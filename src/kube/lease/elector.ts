import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Random } from "../../runtime/random.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { KubeClient } from "../client.ts";
import { isKubeError } from "../errors.ts";
import type { WrittenLease } from "./lease-calls.ts";
import { LeaseCalls } from "./lease-calls.ts";
import type { LeaderLease, LeaderLeaseObservation } from "./lease-record.ts";
import { holderOf, mayAcquire, observeLeaderLease } from "./lease-record.ts";
import type { Moment, TermBounds } from "./lease-term.ts";
import { isTermOver, LeadershipLostError, momentOf, Term } from "./lease-term.ts";
import { Refusals } from "./refusals.ts";

const LEASE_DURATION_MS = 15_000;
const RENEW_DEADLINE_MS = 10_000;
const RETRY_PERIOD_MS = 2_000;
/**
 * How far the wall clock may run ahead of the monotonic clock from one renewal to the next before the lease counts as
 * lost. Renewals are 2 s apart, and never more than the deadline of 10 s. A clock that is slewed gains at most 0.8 s in
 * that time (8.3 % is the fastest rate of chrony by default; ntpd and systemd-timesyncd use 0.05 %). If it gains more,
 * the machine was suspended or the clock was set.
 */
const DRIFT_MAX_MS = 2_000;
/** Random part of the pause, so that candidates that failed at the same time do not retry at the same time. */
const RETRY_JITTER = 1.2;
/**
 * How long the work may take to end after a clean stop. The agent holds the lease during this time. Kubernetes kills a
 * pod after 30 s.
 */
const STOP_PATIENCE_MS = 25_000;
const RELEASE_TIMEOUT_MS = 3_000;

export interface LeaderElectionDeps {
  /**
   * A client with its own connections (`leaseClient` of the runtime), so that no burst of other calls delays a renewal.
   */
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface ElectorOptions {
  namespace: string;
  name: string;
  /**
   * A holder with the same identity counts as this process. It must be unique to the process, unless `ofInstallation`
   * is set.
   */
  identity: string;
  /**
   * Whether the identity is that of an installation. One of its agents at a time uses the lease, and none releases it,
   * so that the next one need not wait. If the API server answers every call with Forbidden for one lease duration, the
   * agent continues without the lease (docs/decisions/0040-one-installation-in-a-cluster.md).
   */
  ofInstallation?: boolean;
  /** How long other candidates wait after they observed the last renewal. The default is 15,000. */
  leaseDurationMs?: number;
  /**
   * The leader stops leading if it could not renew the lease for this long. Shorter than the lease duration. The
   * default is 10,000.
   */
  renewDeadlineMs?: number;
  /** The time between two tries. The default is 2,000. */
  retryPeriodMs?: number;
  /** Annotations of the Lease, for information. Called at each renewal. */
  describe?(): Readonly<Record<string, string>>;
  /** The same, for annotations that stay when the agent releases the Lease. */
  remember?(): Readonly<Record<string, string>>;
  /** Called when the leader changes; with undefined if there is none. */
  onChange?(leader: string | undefined): void;
}

/**
 * The work of the leader. It must end soon after `signal` aborts. After a suspension, the work may continue before the
 * timer that aborts `signal` runs. So code that must not act without the lease calls `isHeld` immediately before it
 * acts: that function compares times and needs no timer.
 */
export type Lead = (signal: AbortSignal, isHeld: () => boolean) => Promise<void>;

/** The holder of a lease, as far as this process knows. */
export type LeaseState =
  | { is: "unknown" | "free" | "ours" }
  | { is: "taken"; by: string }
  /** The last call on the lease failed. */
  | { is: "failing"; why: string }
  /** The API server has answered Forbidden long enough: the agent continues without the lease. */
  | { is: "refused"; why: string };

/** Takes, renews and releases one lease. */
export class Elector {
  readonly #deps: LeaderElectionDeps;
  readonly #options: ElectorOptions;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #bounds: TermBounds;
  readonly #logger: Logger;
  readonly #calls: LeaseCalls;
  #observation: LeaderLeaseObservation | undefined;
  #leader: string | undefined;
  /**
   * Whether at the last read another process held the lease and its term was not over. It may have renewed the lease
   * since then.
   */
  #isTaken = false;
  #term: Term | undefined;
  #lastProblem: string | undefined;
  readonly #refusals: Refusals;

  constructor(deps: LeaderElectionDeps, options: ElectorOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#leaseDurationMs = options.leaseDurationMs ?? LEASE_DURATION_MS;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? RENEW_DEADLINE_MS;
    this.#retryPeriodMs = options.retryPeriodMs ?? RETRY_PERIOD_MS;
    const marginMs = this.#leaseDurationMs - this.#renewDeadlineMs;
    this.#bounds = { renewDeadlineMs: this.#renewDeadlineMs, driftMaxMs: Math.min(DRIFT_MAX_MS, marginMs / 2) };
    this.#refusals = new Refusals({ gapMaxMs: this.#renewDeadlineMs, lastingMs: this.#leaseDurationMs });
    this.#calls = new LeaseCalls(deps, { ...options, leaseDurationMs: this.#leaseDurationMs });
    this.#logger = deps.logger.child({ lease: `${options.namespace}/${options.name}` });
    if (this.#renewDeadlineMs >= this.#leaseDurationMs || this.#retryPeriodMs >= this.#renewDeadlineMs) {
      throw new RangeError("leader election needs retryPeriodMs < renewDeadlineMs < leaseDurationMs");
    }
  }

  /**
   * Waits until this process holds the lease. @returns since when it counts as held; undefined if `signal` aborted
   * first.
   */
  async acquire(signal: AbortSignal): Promise<Moment | undefined> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const heldFrom = await this.#try(this.#renewDeadlineMs, signal, (signal) => this.#takeOrKeep(signal));
      if (heldFrom !== undefined && !isTermOver(heldFrom, momentOf(clock), this.#bounds)) return heldFrom;
      await this.pauseBetweenTries(signal);
    }
    return undefined;
  }

  async pauseBetweenTries(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    await pause(clock, this.#retryPeriodMs * (1 + RETRY_JITTER * random.next()), signal);
  }

  /** Reads the holder of the lease, without taking the lease. */
  async readLease(signal: AbortSignal): Promise<void> {
    await this.#try(this.#renewDeadlineMs, signal, async (signal) => {
      this.#note(await this.#calls.read(signal));
      return undefined;
    });
  }

  /**
   * Tries once to take the lease in the version of the last read. @returns since when it counts as held; undefined if
   * this process does not hold it.
   */
  async take(signal: AbortSignal): Promise<Moment | undefined> {
    const heldFrom = await this.#try(this.#renewDeadlineMs, signal, (signal) =>
      this.#isRefused ? this.#takeOrKeep(signal) : this.#takeAsRead(signal),
    );
    return heldFrom === undefined || isTermOver(heldFrom, momentOf(this.#deps.clock), this.#bounds)
      ? undefined
      : heldFrom;
  }

  /** Whether `take` may succeed, according to the last read. */
  get mayTake(): boolean {
    return this.#isRefused || (this.#observation !== undefined && this.#mayHold(this.#observation));
  }

  get state(): LeaseState {
    if (this.#isRefused) return { is: "refused", why: this.#refusals.why };
    const holder = holderOf(this.#observation?.lease);
    const isOurs = holder === this.#options.identity;
    if (holder !== undefined && !isOurs) return { is: "taken", by: holder };
    if (this.#lastProblem !== undefined) return { is: "failing", why: this.#lastProblem };
    if (this.#observation === undefined) return { is: "unknown" };
    return { is: isOurs ? "ours" : "free" };
  }

  async lead(heldFrom: Moment, lead: Lead, signal: AbortSignal): Promise<void> {
    const term = new Term(this.#deps.clock, heldFrom, this.#bounds, signal);
    this.#term = term;
    this.#logger.info({ identity: this.#options.identity }, "holding the lease");
    const work = this.#work(term, lead);
    const renewals = this.#renewUntilEnded(term);
    let mayGiveBack = this.#options.ofInstallation !== true;
    try {
      await term.settled(work, {
        stopPatienceMs: STOP_PATIENCE_MS,
        lossPatienceMs: this.#leaseDurationMs - this.#renewDeadlineMs,
      });
    } catch (error) {
      // The work lost a further lease, which another process may hold now. Keep this lease until it expires, so that
      // calls in progress can end before another agent leads.
      if (error instanceof LeadershipLostError) mayGiveBack = false;
      throw error;
    } finally {
      term.end();
      await renewals;
      if (mayGiveBack && term.lost === undefined && term.workHasEnded) await this.#release();
    }
  }

  async #work(term: Term, lead: Lead): Promise<void> {
    try {
      await lead(term.signal, () => term.held);
    } finally {
      term.workEnded();
    }
  }

  /**
   * Renews the lease while the work runs, also while it ends after a stop, so that no other agent takes over in that
   * time.
   */
  async #renewUntilEnded(term: Term): Promise<void> {
    const { clock } = this.#deps;
    const { renewing } = term;
    while (!renewing.aborted) {
      await pause(clock, this.#retryPeriodMs, renewing);
      if (renewing.aborted || !term.goesOn()) return;
      // Half of the deadline, so that there is time for another call if one hangs.
      const timeoutMs = Math.min(this.#renewDeadlineMs / 2, term.deadlineMs - clock.monotonicMs());
      const heldFrom = await this.#try(timeoutMs, renewing, (signal) => this.#takeOrKeep(signal));
      if (heldFrom !== undefined) term.renewed(heldFrom);
      else if (this.#isTaken) term.lose(`${this.#leader ?? "another agent"} has taken the lease`);
    }
  }

  /**
   * One try to take or keep the lease, or to read it.
   *
   * @returns when the successful write was sent; undefined if this process does not hold the lease.
   */
  async #try(
    timeoutMs: number,
    signal: AbortSignal,
    call: (signal: AbortSignal) => Promise<Moment | undefined>,
  ): Promise<Moment | undefined> {
    const { clock } = this.#deps;
    const sent = momentOf(clock);
    try {
      const heldFrom = await withDeadline(clock, "the call on the lease", timeoutMs, signal, call);
      this.#lastProblem = undefined;
      // Reading a lease that is free does not show whether the agent has permission to write it.
      const isTaken = this.#observation !== undefined && !this.#mayHold(this.#observation);
      if (heldFrom !== undefined || isTaken) this.#refusals.clear();
      return heldFrom;
    } catch (error) {
      if (signal.aborted) return undefined;
      const isRefusal = isKubeError(error, "Forbidden");
      if (isRefusal) this.#refusals.note(sent.monotonicMs, error.message);
      // A Conflict or AlreadyExists: another process wrote first, and the next read shows the holder.
      const problem = error instanceof Error ? error.message : String(error);
      const isRace = isKubeError(error, "Conflict", "AlreadyExists");
      if (isRace) this.#logger.debug({ err: error }, "lost a race for the lease");
      else if (problem !== this.#lastProblem) this.#logger.warn({ err: error }, "cannot read or write the lease");
      this.#lastProblem = isRace ? undefined : problem;
      return isRefusal && this.#isRefused ? sent : undefined;
    }
  }

  /** False if another installation held the lease when it was last read. */
  get #isRefused(): boolean {
    if (this.#options.ofInstallation !== true || this.#isTaken) return false;
    return this.#refusals.isLasting;
  }

  async #takeOrKeep(signal: AbortSignal): Promise<Moment | undefined> {
    const { identity } = this.#options;
    const known = this.#observation?.lease;
    if (known !== undefined && holderOf(known) === identity) {
      try {
        return this.#noteWritten(await this.#calls.renew(known, signal));
      } catch (error) {
        if (!isKubeError(error, "Conflict", "NotFound", "Invalid")) throw error;
        // Another writer changed or deleted the lease. Read it to find out who holds it now.
      }
    }
    this.#note(await this.#calls.read(signal));
    return this.#takeAsRead(signal);
  }

  async #takeAsRead(signal: AbortSignal): Promise<Moment | undefined> {
    if (this.#observation === undefined || !this.#mayHold(this.#observation)) return undefined;
    const { lease } = this.#observation;
    return this.#noteWritten(
      await (lease === undefined ? this.#calls.create(signal) : this.#calls.renew(lease, signal)),
    );
  }

  #mayHold(observation: LeaderLeaseObservation): boolean {
    const candidate = { identity: this.#options.identity, holds: this.#term?.held === true };
    return mayAcquire(observation, candidate, this.#leaseDurationMs, this.#deps.clock.monotonicMs());
  }

  #noteWritten({ lease, sent }: WrittenLease): Moment {
    this.#note(lease);
    return sent;
  }

  #note(lease: LeaderLease | undefined): void {
    const observation = observeLeaderLease(
      this.#observation,
      lease,
      this.#leaseDurationMs,
      this.#deps.clock.monotonicMs(),
    );
    this.#observation = observation;
    const leader = holderOf(lease);
    this.#isTaken = leader !== undefined && !this.#mayHold(observation);
    if (leader === this.#leader) return;
    this.#leader = leader;
    this.#options.onChange?.(leader);
  }

  /** Releases the lease. If that fails, the lease expires. */
  async #release(): Promise<void> {
    // A new signal, because the caller's has already aborted.
    const { signal } = new AbortController();
    try {
      const left = await withDeadline(
        this.#deps.clock,
        "the release of the lease",
        RELEASE_TIMEOUT_MS,
        signal,
        (signal) => this.#calls.release(signal),
      );
      if (left !== undefined) this.#note(left);
      this.#logger.info("released the lease");
    } catch (error) {
      this.#logger.warn({ err: error }, "could not release the lease, so the next leader waits until it expires");
    }
  }
}

/** Waits; returns early when `signal` aborts. */
async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(clock, delayMs, signal);
  } catch {
    // The signal aborted, and the callers check it.
  }
}
