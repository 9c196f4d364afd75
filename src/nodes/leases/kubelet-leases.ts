import { LEASES, NODE_LEASE_NAMESPACE } from "../../api/kubernetes/core-types.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import type { LeaseRecord } from "./lease-record.ts";
import { readLeaseRecord } from "./lease-record.ts";
import type { RenewalPace } from "./silence.ts";
import { OVERDUE_AFTER_MIN_MS, overdueAfterMs, withGap } from "./silence.ts";

/** The lease of one node as this process has observed it. Times are monotonic: clocks are never compared. */
export interface KubeletLease extends RenewalPace {
  uid: string;
  resourceVersion: string;
  /** When this version was first observed, however that became known. */
  sinceMs: number;
}

interface KnownLease extends KubeletLease {
  /** By the clock of the node, for the time between two renewals alone. */
  renewTimeMs: number | undefined;
}

/**
 * The leases of all nodes of the agent's own cluster, and since when each has not changed. Nothing is watched before
 * the first `start`. Any change counts as a renewal, since that is the safe side.
 */
export class KubeletLeases {
  readonly #runtime: KubeRuntime;
  /** By node, those that have not changed for longest first. */
  readonly #observed = new Map<string, KnownLease>();
  #view: Watched<LeaseRecord> | undefined;
  #rewinds: number | undefined;

  constructor(runtime: KubeRuntime) {
    this.#runtime = runtime;
  }

  /** Begins to watch, unless that has begun. Ends when `signal` aborts: then nothing is known any more. */
  start(signal: AbortSignal): void {
    if (this.#view !== undefined) return;
    const view = this.#runtime.watch<LeaseRecord>(
      { type: LEASES, namespace: NODE_LEASE_NAMESPACE, trim: readLeaseRecord },
      signal,
    );
    this.#view = view;
    const stop = view.subscribe((change) => this.#observe(change));
    signal.addEventListener(
      "abort",
      () => {
        stop();
        this.#view = undefined;
        this.#observed.clear();
      },
      { once: true },
    );
  }

  /** Whether the leases have been read in full. */
  get synced(): boolean {
    return this.#view?.synced === true;
  }

  /** What is known of the lease of a node; undefined if there is none, or if leases are not watched. */
  of(nodeName: string): KubeletLease | undefined {
    this.#forgetAfterRewind();
    return this.#observed.get(nodeName);
  }

  /** Names of nodes whose renewal is overdue, by what this process has observed. */
  *overdue(): Iterable<string> {
    this.#forgetAfterRewind();
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [name, observed] of this.#observed) {
      const silentMs = nowMs - observed.sinceMs;
      if (silentMs <= OVERDUE_AFTER_MIN_MS) return;
      if (silentMs > overdueAfterMs(observed)) yield name;
    }
  }

  /** The time until a renewal may be overdue, or a new lease may be; 0 if one may be overdue now. */
  get nextOverdueInMs(): number {
    this.#forgetAfterRewind();
    const nowMs = this.#runtime.clock.monotonicMs();
    const [oldest] = this.#observed.values();
    return Math.max(0, (oldest?.sinceMs ?? nowMs) + OVERDUE_AFTER_MIN_MS - nowMs);
  }

  /** Reads the lease of a node live, so that a watch that lags shows no silence. Undefined if there is none. */
  async readLive(nodeName: string, signal: AbortSignal): Promise<KubeletLease | undefined> {
    try {
      const key = { namespace: NODE_LEASE_NAMESPACE, name: nodeName };
      this.#take(readLeaseRecord(await this.#runtime.client.get<KubeObject>(LEASES, key, signal)));
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
      this.#observed.delete(nodeName);
    }
    return this.of(nodeName);
  }

  #observe(change: Change<LeaseRecord>): void {
    this.#forgetAfterRewind();
    if (change.type === "deleted") this.#observed.delete(change.object.metadata.name);
    else this.#take(change.object);
  }

  /** A version other than the last one is a change. Which of the two is later does not matter. */
  #take({ metadata: { name, uid, resourceVersion }, durationMs, renewTimeMs }: LeaseRecord): void {
    const known = this.#observed.get(name);
    if (known?.uid === uid && known.resourceVersion === resourceVersion) return;
    const sinceMs = this.#runtime.clock.monotonicMs();
    const gapsMs = known?.uid === uid ? withGap(known.gapsMs, gapMs(known, sinceMs, renewTimeMs)) : [];
    // Behind all others: a map keeps the place of a key that it has.
    this.#observed.delete(name);
    this.#observed.set(name, { uid, resourceVersion, durationMs, gapsMs, renewTimeMs, sinceMs });
  }

  /** After etcd was restored, versions are of another history: all silence begins again. */
  #forgetAfterRewind(): void {
    const rewinds = this.#view?.rewinds;
    if (rewinds === this.#rewinds) return;
    this.#rewinds = rewinds;
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [name, observed] of this.#observed) this.#observed.set(name, { ...observed, sinceMs: nowMs });
  }
}

/** The time between two renewals. If a watch that lags delivers several at once, the node's clock shows it. */
function gapMs(known: KnownLease, sinceMs: number, renewTimeMs: number | undefined): number {
  const byNodeMs = (renewTimeMs ?? -Infinity) - (known.renewTimeMs ?? Infinity);
  return Math.max(sinceMs - known.sinceMs, byNodeMs);
}
