import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Random } from "../../runtime/random.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { KubeClient } from "../client.ts";
import { isKubeError } from "../errors.ts";
import { heldRecord, holderOf, LEASE, mayAcquire, observe, releasedRecord } from "./lease-record.ts";
import type { LeaderLease, LeaseSpec, Observation } from "./lease-record.ts";
import type { Moment, TermBounds } from "./lease-term.ts";
import { isOver, LeadershipLostError, momentOf, Term } from "./lease-term.ts";

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
  /** Called with the leader when that changes; undefined if there is none. */
  onChange?(leader: string | undefined): void;
}

/**
 * The work of the leader. It has to end soon after `signal` aborts. A process that was suspended may go on before its
 * timers do, so what must not happen without the lease asks `isHeld` at the last moment: that compares times.
 */
export type Lead = (signal: AbortSignal, isHeld: () => boolean) => Promise<void>;

export interface LeaderElectionOptions extends ElectorOptions {
  lead: Lead;
}

/** Who holds a lease, as far as is known. */
export type LeaseState =
  | { is: "unknown" | "free" | "ours" }
  | { is: "taken"; by: string }
  /** The last call on it has failed. */
  | { is: "failing"; why: string }
  /** The API server has answered Forbidden for so long that the agent continues without the lease. */
  | { is: "refused"; why: string };

/**
 * Leads once: waits for the lease, then runs `lead` for as long as the lease is held.
 *
 * A lease is not a lock on a BMC: it makes two leaders unlikely, and what the leader does must still be guarded write
 * by write. What is promised: others take the lease at the earliest one lease duration after they saw our last renewal,
 * and `lead`'s signal aborts one renew deadline after that renewal was *sent*, so before that by the difference of the
 * two. Both are judged on monotonic clocks; wall-clock times in the Lease are for information. A monotonic clock stands
 * still while the machine is suspended, so a wall clock that has run ahead of it ends the term, too (`lease-term.ts`).
 *
 * If there is no Lease, a user may have deleted it under a leader that cannot reach the API and has not noticed: a
 * candidate waits one lease duration before it makes another, at its first start, too, since it cannot tell that from a
 * cluster in which no agent has ever led.
 *
 * Resolves when `signal` aborted, or `lead` came to its end: the lease is given back after `lead` has settled. @throws
 * what `lead` throws; LeadershipLostError when the lease was lost or `lead` did not stop in time: the process must then
 * exit.
 */
export async function runLeaderElection(
  deps: LeaderElectionDeps,
  options: LeaderElectionOptions,
  signal: AbortSignal,
): Promise<void> {
  const elector = new Elector(deps, options);
  const heldFrom = await elector.acquire(signal);
  if (heldFrom !== undefined) await elector.lead(heldFrom, options.lead, signal);
}

/** Consecutive answers of Forbidden to calls on the lease. */
interface Refusals {
  sinceMs: number;
  lastMs: number;
  why: string;
}

/** Takes, renews and releases one lease. */
export class Elector {
  readonly #deps: LeaderElectionDeps;
  readonly #options: ElectorOptions;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #bounds: TermBounds;
  readonly #logger: Logger;
  #seen: Observation | undefined;
  #leader: string | undefined;
  /**
   * Whether another one held it, and its term had not run out, at the last read: it may have been renewed unseen since.
   */
  #isTaken = false;
  #term: Term | undefined;
  #lastProblem: string | undefined;
  #refusals: Refusals | undefined;

  constructor(deps: LeaderElectionDeps, options: ElectorOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#leaseDurationMs = options.leaseDurationMs ?? LEASE_DURATION_MS;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? RENEW_DEADLINE_MS;
    this.#retryPeriodMs = options.retryPeriodMs ?? RETRY_PERIOD_MS;
    const marginMs = this.#leaseDurationMs - this.#renewDeadlineMs;
    this.#bounds = { renewDeadlineMs: this.#renewDeadlineMs, driftMaxMs: Math.min(DRIFT_MAX_MS, marginMs / 2) };
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
      if (heldFrom !== undefined && !isOver(heldFrom, momentOf(clock), this.#bounds)) return heldFrom;
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
      this.#note(await this.#read(signal));
      return undefined;
    });
  }

  /** Tries once to take the lease as the last read showed it. As `acquire`; undefined if it is not ours. */
  async take(signal: AbortSignal): Promise<Moment | undefined> {
    const heldFrom = await this.#try(this.#renewDeadlineMs, signal, (signal) =>
      this.#isRefused ? this.#takeOrKeep(signal) : this.#takeSeen(signal),
    );
    return heldFrom === undefined || isOver(heldFrom, momentOf(this.#deps.clock), this.#bounds) ? undefined : heldFrom;
  }

  /** Whether a try to take it may succeed, by the last read. */
  get mayTake(): boolean {
    return this.#isRefused || (this.#seen !== undefined && this.#mayHold(this.#seen));
  }

  get state(): LeaseState {
    if (this.#isRefused) return { is: "refused", why: this.#refusals?.why ?? "" };
    const holder = holderOf(this.#seen?.lease);
    const isOurs = holder === this.#options.identity;
    if (holder !== undefined && !isOurs) return { is: "taken", by: holder };
    if (this.#lastProblem !== undefined) return { is: "failing", why: this.#lastProblem };
    if (this.#seen === undefined) return { is: "unknown" };
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
      const isTaken = this.#seen !== undefined && !this.#mayHold(this.#seen);
      if (heldFrom !== undefined || isTaken) this.#refusals = undefined;
      return heldFrom;
    } catch (error) {
      if (signal.aborted) return undefined;
      const isRefusal = isKubeError(error, "Forbidden");
      if (isRefusal) this.#noteRefusal(sent.monotonicMs, error.message);
      // Another process wrote first: the lease is not ours now, and the next read shows its holder.
      const problem = error instanceof Error ? error.message : String(error);
      const isRace = isKubeError(error, "Conflict", "AlreadyExists");
      if (isRace) this.#logger.debug({ err: error }, "lost a race for the lease");
      else if (problem !== this.#lastProblem) this.#logger.warn({ err: error }, "cannot read or write the lease");
      this.#lastProblem = isRace ? undefined : problem;
      return isRefusal && this.#isRefused ? sent : undefined;
    }
  }

  /**
   * An API server that starts may refuse for a moment what it allows, so refusals with a gap between them do not add
   * up.
   */
  #noteRefusal(atMs: number, why: string): void {
    const before = this.#refusals;
    const goesOn = before !== undefined && atMs - before.lastMs < this.#renewDeadlineMs;
    this.#refusals = { sinceMs: goesOn ? before.sinceMs : atMs, lastMs: atMs, why };
  }

  /** False if another installation held the lease when it was last read. */
  get #isRefused(): boolean {
    if (this.#options.ofInstallation !== true || this.#isTaken) return false;
    return this.#refusals !== undefined && this.#refusals.lastMs - this.#refusals.sinceMs > this.#leaseDurationMs;
  }

  async #takeOrKeep(signal: AbortSignal): Promise<Moment | undefined> {
    const { identity } = this.#options;
    const known = this.#seen?.lease;
    if (known !== undefined && holderOf(known) === identity) {
      try {
        return await this.#write(known, signal);
      } catch (error) {
        if (!isKubeError(error, "Conflict", "NotFound", "Invalid")) throw error;
        // Changed behind our back: see below by which process.
      }
    }
    this.#note(await this.#read(signal));
    return this.#takeSeen(signal);
  }

  async #takeSeen(signal: AbortSignal): Promise<Moment | undefined> {
    if (this.#seen === undefined || !this.#mayHold(this.#seen)) return undefined;
    const { lease } = this.#seen;
    return lease === undefined ? await this.#create(signal) : await this.#write(lease, signal);
  }

  #mayHold(seen: Observation): boolean {
    const candidate = { identity: this.#options.identity, holds: this.#term?.held === true };
    return mayAcquire(seen, candidate, this.#leaseDurationMs, this.#deps.clock.monotonicMs());
  }

  async #read(signal: AbortSignal): Promise<LeaderLease | undefined> {
    const { namespace, name } = this.#options;
    try {
      return await this.#deps.client.get<LeaderLease>(LEASE, { namespace, name }, signal);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  /** As `#write`: the lease is ours from when the request was sent, since others may have seen it that early. */
  async #create(signal: AbortSignal): Promise<Moment> {
    const { client, clock } = this.#deps;
    const { namespace, name } = this.#options;
    const sent = momentOf(clock);
    const object = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { namespace, name, annotations: this.#options.describe?.() ?? {} },
      spec: this.#record(undefined),
    };
    this.#note(await client.create<LeaderLease>(LEASE, object, {}, signal));
    return sent;
  }

  async #write(lease: LeaderLease, signal: AbortSignal): Promise<Moment> {
    const { client, clock } = this.#deps;
    const { namespace, name } = this.#options;
    const { uid, resourceVersion } = lease.metadata;
    const sent = momentOf(clock);
    const annotations = this.#options.describe?.();
    const content = { ...(annotations && { metadata: { annotations } }), spec: this.#record(lease.spec) };
    this.#note(
      await client.mergePatch<LeaderLease>(LEASE, { namespace, name }, { uid, resourceVersion }, content, {}, signal),
    );
    return sent;
  }

  #record(before: LeaseSpec | undefined): Required<LeaseSpec> {
    return heldRecord(before, this.#options.identity, this.#leaseDurationMs, this.#deps.clock.nowMs());
  }

  #note(lease: LeaderLease | undefined): Observation {
    const seen = observe(this.#seen, lease, this.#leaseDurationMs, this.#deps.clock.monotonicMs());
    this.#seen = seen;
    const leader = holderOf(lease);
    this.#isTaken = leader !== undefined && !this.#mayHold(seen);
    if (leader === this.#leader) return seen;
    this.#leader = leader;
    this.#options.onChange?.(leader);
    return seen;
  }

  /** Releases the lease; if that fails, it expires by itself. */
  async #release(): Promise<void> {
    // A signal of its own: the caller's has already aborted.
    const { signal } = new AbortController();
    try {
      await withDeadline(this.#deps.clock, "the release of the lease", RELEASE_TIMEOUT_MS, signal, (signal) =>
        this.#writeRelease(signal),
      );
      this.#logger.info("gave the lease back");
    } catch (error) {
      this.#logger.warn({ err: error }, "could not release the lease; it expires by itself");
    }
  }

  async #writeRelease(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const { namespace, name, identity } = this.#options;
    // Read again: the last renewal may have been cut off and still have taken effect.
    const lease = await this.#read(signal);
    if (lease === undefined || holderOf(lease) !== identity) return;
    const { uid, resourceVersion } = lease.metadata;
    // They describe the agent that led.
    const annotations = Object.fromEntries(Object.keys(this.#options.describe?.() ?? {}).map((key) => [key, null]));
    const content = { metadata: { annotations }, spec: releasedRecord(lease.spec, clock.nowMs()) };
    this.#note(
      await client.mergePatch<LeaderLease>(LEASE, { namespace, name }, { uid, resourceVersion }, content, {}, signal),
    );
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
