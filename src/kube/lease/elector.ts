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
 * By how much the wall clock may run ahead of the monotonic one from one renewal to the next before the lease counts as
 * lost. Between renewals lie 2 s, and never more than the deadline of 10 s: a clock that is slewed gains 0.8 s at most
 * in those (by 8.3 %, the fastest that chrony does by default; ntpd and systemd-timesyncd take 0.05 %). What is more is
 * a suspension, or a clock that was set.
 */
const DRIFT_MAX_MS = 2_000;
/** Candidates that failed together do not come back together. */
const RETRY_JITTER = 1.2;
/**
 * How long work may take to wind down on a clean stop, the lease held all the while; Kubernetes kills a pod after 30 s.
 */
const STOP_PATIENCE_MS = 25_000;
const RELEASE_TIMEOUT_MS = 3_000;

export interface LeaderElectionDeps {
  /** On connections of its own (`leaseClient` of the runtime), so that no burst of other calls delays a renewal. */
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface ElectorOptions {
  namespace: string;
  name: string;
  /** A holder by the same identity counts as ourselves. Unique to this process, unless `ofInstallation` is set. */
  identity: string;
  /**
   * The identity is that of a whole installation, of which one agent at a time uses this lease. No agent releases it,
   * so that the next one need not wait. If the API server answers every call with Forbidden for one lease duration, the
   * agent continues without the lease (docs/decisions/0040-one-installation-in-a-cluster.md).
   */
  ofInstallation?: boolean;
  /** How long others wait after they saw the last renewal. The default is 15,000. */
  leaseDurationMs?: number;
  /** Without a renewal for this long we stop leading; less than the duration. The default is 10,000. */
  renewDeadlineMs?: number;
  /** Between tries. The default is 2,000. */
  retryPeriodMs?: number;
  /** Annotations of the Lease, for information: read at each renewal. */
  describe?(): Readonly<Record<string, string>>;
  /** The same, for annotations that stay when the agent releases the Lease. */
  remember?(): Readonly<Record<string, string>>;
  /** Called with the leader when that changes; undefined if there is none. */
  onChange?(leader: string | undefined): void;
}

/**
 * The work of the leader. It has to end soon after `signal` aborts. A process that was suspended may go on before its
 * timers do, so what must not happen without the lease asks `isHeld` at the last moment: that compares times.
 */
export type Lead = (signal: AbortSignal, isHeld: () => boolean) => Promise<void>;

/** Who holds a lease, as far as is known. */
export type LeaseState =
  | { is: "unknown" | "free" | "ours" }
  | { is: "taken"; by: string }
  /** The last call on it has failed. */
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
   * Whether another one held it, and its term had not run out, at the last read: it may have been renewed unseen since.
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

  /** Resolves with the moment from which the lease counts as ours; undefined if `signal` aborted first. */
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

  /** Reads who holds the lease, and takes nothing. */
  async readLease(signal: AbortSignal): Promise<void> {
    await this.#try(this.#renewDeadlineMs, signal, async (signal) => {
      this.#note(await this.#calls.read(signal));
      return undefined;
    });
  }

  /** Tries once to take the lease as the last read showed it. As `acquire`; undefined if it is not ours. */
  async take(signal: AbortSignal): Promise<Moment | undefined> {
    const heldFrom = await this.#try(this.#renewDeadlineMs, signal, (signal) =>
      this.#isRefused ? this.#takeOrKeep(signal) : this.#takeSeen(signal),
    );
    return heldFrom === undefined || isTermOver(heldFrom, momentOf(this.#deps.clock), this.#bounds)
      ? undefined
      : heldFrom;
  }

  /** Whether a try to take it may succeed, by the last read. */
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
      // The work needs a further lease, which may belong to another holder now: what it began has time to end.
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
   * Renews while the work goes on, also while it winds down after a stop, so that no other agent takes over during it.
   */
  async #renewUntilEnded(term: Term): Promise<void> {
    const { clock } = this.#deps;
    const { renewing } = term;
    while (!renewing.aborted) {
      await pause(clock, this.#retryPeriodMs, renewing);
      if (renewing.aborted || !term.goesOn()) return;
      // Half of the deadline, so that one call that hangs leaves room for another.
      const timeoutMs = Math.min(this.#renewDeadlineMs / 2, term.deadlineMs - clock.monotonicMs());
      const heldFrom = await this.#try(timeoutMs, renewing, (signal) => this.#takeOrKeep(signal));
      if (heldFrom !== undefined) term.renewed(heldFrom);
      else if (this.#isTaken) term.lose(`${this.#leader ?? "another agent"} has taken the lease`);
    }
  }

  /**
   * One try to take or keep the lease, or to read it.
   *
   * @returns when the write that succeeded was sent; undefined if the lease is not ours.
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
      // A read of a lease that may be taken does not show whether it may be written.
      const isTaken = this.#observation !== undefined && !this.#mayHold(this.#observation);
      if (heldFrom !== undefined || isTaken) this.#refusals.clear();
      return heldFrom;
    } catch (error) {
      if (signal.aborted) return undefined;
      const isRefusal = isKubeError(error, "Forbidden");
      if (isRefusal) this.#refusals.note(sent.monotonicMs, error.message);
      // Another process wrote first: the lease is not ours now, and the next read shows its holder.
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
        // Changed behind our back: see below by which process.
      }
    }
    this.#note(await this.#calls.read(signal));
    return this.#takeSeen(signal);
  }

  async #takeSeen(signal: AbortSignal): Promise<Moment | undefined> {
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

  /** Releases the lease; if that fails, it expires by itself. */
  async #release(): Promise<void> {
    // A signal of its own: the caller's has already aborted.
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
      this.#logger.info("gave the lease back");
    } catch (error) {
      this.#logger.warn({ err: error }, "could not release the lease; it expires by itself");
    }
  }
}

/** Waits; returns early when `signal` aborts. */
async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(clock, delayMs, signal);
  } catch {
    // The callers look at the signal themselves.
  }
}
