import { LEASES, NODE_LEASE_NAMESPACE } from "../../api/kubernetes/core-types.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import type { LeaseRecord } from "./lease-record.ts";
import { readLeaseRecord } from "./lease-record.ts";
import type { RenewalPace } from "./silence.ts";
import { OVERDUE_AFTER_MIN_MS, overdueAfterMs, withGap } from "./silence.ts";

/**
 * The lease of one node as this process has observed it. Its times are monotonic, so they do not depend on other
 * clocks.
 */
export interface KubeletLease extends RenewalPace {
  uid: string;
  resourceVersion: string;
  /** When this version was first observed, by the watch or a live read. */
  sinceMs: number;
}

interface KnownLease extends KubeletLease {
  /** On the clock of the node. Only differences between two renewals are used. */
  renewTimeMs: number | undefined;
  /** When the last renewal was first observed; monotonic. Other changes of the lease do not count. */
  renewedMs: number;
}

/**
 * The leases of all nodes of the agent's own cluster, and since when each of them has not changed. The watch begins
 * with the first `start`. Any change counts as a renewal, which is the safe side.
 */
export class KubeletLeases {
  readonly #runtime: KubeRuntime;
  /** By node. The lease whose last change is the oldest comes first. */
  readonly #observed = new Map<string, KnownLease>();
  #view: Watched<LeaseRecord> | undefined;
  #rewinds: number | undefined;

  constructor(runtime: KubeRuntime) {
    this.#runtime = runtime;
  }

  /** Begins to watch, unless it already does. When `signal` aborts, the watch ends and all observations are dropped. */
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

  /** The lease of a node; undefined if there is none, or if leases are not watched. */
  of(nodeName: string): KubeletLease | undefined {
    this.#forgetAfterRewind();
    return this.#observed.get(nodeName);
  }

  /** The names of the nodes whose renewal is overdue, as far as this process has observed. */
  *overdue(): Iterable<string> {
    this.#forgetAfterRewind();
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [name, observed] of this.#observed) {
      const silentMs = nowMs - observed.sinceMs;
      if (silentMs <= OVERDUE_AFTER_MIN_MS) return;
      if (silentMs > overdueAfterMs(observed)) yield name;
    }
  }

  /**
   * The shortest time until the renewal of any lease, also of a new one, may be overdue; 0 if one may be overdue now.
   */
  get nextOverdueInMs(): number {
    this.#forgetAfterRewind();
    const nowMs = this.#runtime.clock.monotonicMs();
    const [oldest] = this.#observed.values();
    return Math.max(0, (oldest?.sinceMs ?? nowMs) + OVERDUE_AFTER_MIN_MS - nowMs);
  }

  /** Reads the lease of a node live, so that a late watch does not look like silence. Undefined if there is none. */
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

  /** Any version that differs from the last one counts as a change, even if it is an earlier one. */
  #take({ metadata: { name, uid, resourceVersion }, durationMs, renewTimeMs }: LeaseRecord): void {
    const known = this.#observed.get(name);
    if (known?.uid === uid && known.resourceVersion === resourceVersion) return;
    const sinceMs = this.#runtime.clock.monotonicMs();
    const before = known?.uid === uid ? known : undefined;
    // Other clients may change a lease too. Such a change does not renew it, and must not make the gaps look shorter.
    const isRenewal = before?.renewTimeMs !== renewTimeMs;
    const { gapsMs, renewedMs } =
      before === undefined
        ? { gapsMs: [], renewedMs: sinceMs }
        : isRenewal
          ? { gapsMs: withGap(before.gapsMs, gapMs(before, sinceMs, renewTimeMs)), renewedMs: sinceMs }
          : before;
    // Deleted first, so that the entry moves to the end of the map.
    this.#observed.delete(name);
    this.#observed.set(name, { uid, resourceVersion, durationMs, gapsMs, renewTimeMs, renewedMs, sinceMs });
  }

  /**
   * After etcd was restored, versions cannot be compared with earlier ones, so the silence of all leases starts again.
   */
  #forgetAfterRewind(): void {
    const rewinds = this.#view?.rewinds;
    if (rewinds === this.#rewinds) return;
    this.#rewinds = rewinds;
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [name, observed] of this.#observed) this.#observed.set(name, { ...observed, sinceMs: nowMs });
  }
}

/**
 * The time between two renewals. If a late watch delivers several renewals at once, the times on the node's clock show
 * the gaps.
 */
function gapMs(known: KnownLease, sinceMs: number, renewTimeMs: number | undefined): number {
  const byNodeMs = (renewTimeMs ?? -Infinity) - (known.renewTimeMs ?? Infinity);
  return Math.max(sinceMs - known.renewedMs, byNodeMs);
}
