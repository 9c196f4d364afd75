import type { Clock, Timer } from "../runtime/clock.ts";
import { abortReason, sleep } from "../runtime/clock.ts";
import { withDeadline } from "../runtime/deadline.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { KubeClient } from "./client.ts";
import { isKubeError } from "./errors.ts";
import { heldRecord, holderOf, LEASE, mayHold, observe, releasedRecord } from "./lease-record.ts";
import type { Lease, LeaseSpec, Observation } from "./lease-record.ts";

const LEASE_DURATION_MS = 15_000;
const RENEW_DEADLINE_MS = 10_000;
const RETRY_PERIOD_MS = 2_000;
/** Candidates that failed together do not come back together. */
const RETRY_JITTER = 1.2;
/** How long work may take to wind down on a clean stop, the lease held all the while; Kubernetes kills a pod after 30 s. */
const STOP_PATIENCE_MS = 25_000;
const RELEASE_TIMEOUT_MS = 3_000;

export interface LeaderElectionDeps {
  /** On connections of its own (`leaseClient` of the runtime), so that no burst of other calls delays a renewal. */
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface LeaderElectionOptions {
  namespace: string;
  name: string;
  /** Unique to this process: a holder by the same identity counts as ourselves. */
  identity: string;
  /** How long others wait after they saw the last renewal. 15,000 where absent. */
  leaseDurationMs?: number;
  /** Without a renewal for this long we stop leading; less than the duration. 10,000 where absent. */
  renewDeadlineMs?: number;
  /** Between tries. 2,000 where absent. */
  retryPeriodMs?: number;
  /**
   * The work of the leader. It has to end soon after `signal` aborts. A process that was suspended may go on before its timers
   * do, so what must not happen without the lease asks `isHeld` at the last moment: that compares times.
   */
  lead(signal: AbortSignal, isHeld: () => boolean): Promise<void>;
  /** Told who leads, when that changes; undefined: nobody. */
  onChange?(leader: string | undefined): void;
}

/**
 * Leads once: waits for the lease, then runs `lead` for as long as the lease is held.
 *
 * A lease is not a lock on a BMC: it makes two leaders unlikely, and what the leader does must still be guarded write by
 * write. What is promised: others take the lease at the earliest one lease duration after they saw our last renewal, and
 * `lead`'s signal aborts one renew deadline after that renewal was *sent*, so before that by the difference of the two.
 * Both are judged on monotonic clocks; wall-clock times in the Lease are for people.
 *
 * Resolves when `signal` aborted, or `lead` came to its end: the lease is given back after `lead` has settled. @throws what
 * `lead` throws; LeadershipLostError when the lease was lost or `lead` did not stop in time: the process must then exit.
 */
export async function runLeaderElection(
  deps: LeaderElectionDeps,
  options: LeaderElectionOptions,
  signal: AbortSignal,
): Promise<void> {
  const elector = new Elector(deps, options);
  const heldFromMs = await elector.acquire(signal);
  if (heldFromMs !== undefined) await elector.lead(heldFromMs, signal);
}

/** The lease is not ours any more, or may soon be another's. */
export class LeadershipLostError extends Error {
  override readonly name = "LeadershipLostError";
}

class Elector {
  readonly #deps: LeaderElectionDeps;
  readonly #options: LeaderElectionOptions;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #logger: Logger;
  #seen: Observation | undefined;
  #leader: string | undefined;
  #lastProblem: string | undefined;

  constructor(deps: LeaderElectionDeps, options: LeaderElectionOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#leaseDurationMs = options.leaseDurationMs ?? LEASE_DURATION_MS;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? RENEW_DEADLINE_MS;
    this.#retryPeriodMs = options.retryPeriodMs ?? RETRY_PERIOD_MS;
    this.#logger = deps.logger.child({ lease: `${options.namespace}/${options.name}` });
    if (this.#renewDeadlineMs >= this.#leaseDurationMs || this.#retryPeriodMs >= this.#renewDeadlineMs) {
      throw new RangeError("leader election needs retryPeriodMs < renewDeadlineMs < leaseDurationMs");
    }
  }

  /** Resolves with the (monotonic) time from which the lease counts as ours; undefined where `signal` aborted first. */
  async acquire(signal: AbortSignal): Promise<number | undefined> {
    const { clock, random } = this.#deps;
    while (!signal.aborted) {
      const heldFromMs = await this.#try(this.#renewDeadlineMs, signal);
      if (heldFromMs !== undefined && clock.monotonicMs() < heldFromMs + this.#renewDeadlineMs) return heldFromMs;
      await pause(clock, this.#retryPeriodMs * (1 + RETRY_JITTER * random.next()), signal);
    }
    return undefined;
  }

  async lead(heldFromMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const term = new Term(clock, heldFromMs + this.#renewDeadlineMs, signal);
    this.#logger.info({ identity: this.#options.identity }, "leading");
    const work = this.#work(term);
    const renewals = this.#renewUntilEnded(term);
    try {
      await term.settled(work, {
        stopPatienceMs: STOP_PATIENCE_MS,
        lossPatienceMs: this.#leaseDurationMs - this.#renewDeadlineMs,
      });
    } finally {
      term.end();
      await renewals;
      if (term.lost === undefined && term.workHasEnded) await this.#release();
    }
  }

  async #work(term: Term): Promise<void> {
    try {
      await this.#options.lead(term.signal, () => term.held);
    } finally {
      term.workEnded();
    }
  }

  /** Renews while the work goes on, also while it winds down after a stop, so that nobody takes over in the midst of it. */
  async #renewUntilEnded(term: Term): Promise<void> {
    const { clock } = this.#deps;
    const { renewing } = term;
    while (!renewing.aborted) {
      await pause(clock, this.#retryPeriodMs, renewing);
      if (renewing.aborted) return;
      // Half of the deadline, so that one call that hangs leaves room for another.
      const timeoutMs = Math.min(this.#renewDeadlineMs / 2, term.deadlineMs - clock.monotonicMs());
      const heldFromMs = await this.#try(timeoutMs, renewing);
      if (heldFromMs !== undefined) term.renewed(heldFromMs + this.#renewDeadlineMs);
      else if (this.#leader !== undefined && this.#leader !== this.#options.identity) {
        term.lose(`${this.#leader} has taken the lease`);
      }
    }
  }

  /**
   * One try to take or keep the lease.
   *
   * @returns when the write that succeeded was sent, on the monotonic clock; undefined where the lease is not ours.
   */
  async #try(timeoutMs: number, signal: AbortSignal): Promise<number | undefined> {
    const { clock } = this.#deps;
    try {
      const heldFromMs = await withDeadline(clock, "the call on the lease", timeoutMs, signal, (signal) =>
        this.#takeOrKeep(signal),
      );
      this.#lastProblem = undefined;
      return heldFromMs;
    } catch (error) {
      if (signal.aborted) return undefined;
      // Somebody else wrote first: not ours now, and the next read says whose it is.
      const problem = error instanceof Error ? error.message : String(error);
      if (isKubeError(error, "Conflict", "AlreadyExists"))
        this.#logger.debug({ err: error }, "lost a race for the lease");
      else if (problem !== this.#lastProblem) this.#logger.warn({ err: error }, "cannot read or write the lease");
      this.#lastProblem = problem;
      return undefined;
    }
  }

  async #takeOrKeep(signal: AbortSignal): Promise<number | undefined> {
    const { clock } = this.#deps;
    const { identity } = this.#options;
    if (this.#seen !== undefined && holderOf(this.#seen.lease) === identity) {
      try {
        return await this.#write(this.#seen.lease, signal);
      } catch (error) {
        if (!isKubeError(error, "Conflict", "NotFound", "Invalid")) throw error;
        // Changed behind our back: see below by whom.
      }
    }
    const lease = await this.#read(signal);
    if (lease === undefined) return await this.#create(signal);
    this.#note(lease);
    const seen = this.#seen;
    if (seen === undefined || !mayHold(seen, identity, this.#leaseDurationMs, clock.monotonicMs())) return undefined;
    return await this.#write(seen.lease, signal);
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { namespace, name } = this.#options;
    try {
      return await this.#deps.client.get<Lease>(LEASE, { namespace, name }, signal);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  /** As `#write`: the lease is ours from when the request was sent, since others may have seen it that early. */
  async #create(signal: AbortSignal): Promise<number> {
    const { client, clock } = this.#deps;
    const { namespace, name } = this.#options;
    const sentMs = clock.monotonicMs();
    const object = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { namespace, name },
      spec: this.#record(undefined),
    };
    this.#note(await client.create<Lease>(LEASE, object, {}, signal));
    return sentMs;
  }

  async #write(lease: Lease, signal: AbortSignal): Promise<number> {
    const { client, clock } = this.#deps;
    const { namespace, name } = this.#options;
    const { uid, resourceVersion } = lease.metadata;
    const sentMs = clock.monotonicMs();
    const content = { spec: this.#record(lease.spec) };
    this.#note(
      await client.mergePatch<Lease>(LEASE, { namespace, name }, { uid, resourceVersion }, content, {}, signal),
    );
    return sentMs;
  }

  #record(before: LeaseSpec | undefined): Required<LeaseSpec> {
    return heldRecord(before, this.#options.identity, this.#leaseDurationMs, this.#deps.clock.nowMs());
  }

  #note(lease: Lease): void {
    this.#seen = observe(this.#seen, lease, this.#deps.clock.monotonicMs());
    const leader = holderOf(lease);
    if (leader === this.#leader) return;
    this.#leader = leader;
    this.#options.onChange?.(leader);
  }

  /** Gives the lease back; where that fails it runs out by itself. */
  async #release(): Promise<void> {
    // A signal of its own: the caller's has aborted by now.
    const { signal } = new AbortController();
    try {
      await withDeadline(this.#deps.clock, "the release of the lease", RELEASE_TIMEOUT_MS, signal, (signal) =>
        this.#writeRelease(signal),
      );
      this.#logger.info("gave the lease back");
    } catch (error) {
      this.#logger.warn({ err: error }, "could not give the lease back, it will run out");
    }
  }

  async #writeRelease(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const { namespace, name, identity } = this.#options;
    // Read anew: the last renewal may have been cut off, and have taken effect all the same.
    const lease = await this.#read(signal);
    if (lease === undefined || holderOf(lease) !== identity) return;
    const { uid, resourceVersion } = lease.metadata;
    const content = { spec: releasedRecord(lease.spec, clock.nowMs()) };
    this.#note(
      await client.mergePatch<Lease>(LEASE, { namespace, name }, { uid, resourceVersion }, content, {}, signal),
    );
  }
}

/** One term of leadership: its deadline, and the three ways it ends (stop, loss, the work's own end). */
class Term {
  readonly #clock: Clock;
  readonly #parent: AbortSignal;
  readonly #leading = new AbortController();
  readonly #renewing = new AbortController();
  readonly #onStop: () => void;
  #deadline: Timer;
  /** When the lease counts as lost, on the monotonic clock. */
  deadlineMs: number;
  lost: LeadershipLostError | undefined;
  workHasEnded = false;

  constructor(clock: Clock, deadlineMs: number, parent: AbortSignal) {
    this.#clock = clock;
    this.#parent = parent;
    this.deadlineMs = deadlineMs;
    this.#deadline = this.#armed();
    this.#onStop = () => this.#leading.abort(abortReason(parent));
    if (parent.aborted) this.#onStop();
    else parent.addEventListener("abort", this.#onStop, { once: true });
  }

  /** Whether the lease cannot be another's yet. */
  get held(): boolean {
    return this.lost === undefined && this.#clock.monotonicMs() < this.deadlineMs;
  }

  /** Aborts on stop and on loss. */
  get signal(): AbortSignal {
    return this.#leading.signal;
  }

  /** Aborts when renewals are to end: on loss, and once the work has ended. */
  get renewing(): AbortSignal {
    return this.#renewing.signal;
  }

  renewed(deadlineMs: number): void {
    if (this.lost !== undefined) return;
    this.deadlineMs = deadlineMs;
    this.#deadline.cancel();
    this.#deadline = this.#armed();
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
   * Resolves when the work has ended. @throws what the work throws of itself; LeadershipLostError on loss, and where the
   * work is still going on one patience after it was told to stop.
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

/** Waits; returns early when `signal` aborts. */
async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(clock, delayMs, signal);
  } catch {
    // The callers look at the signal themselves.
  }
}
