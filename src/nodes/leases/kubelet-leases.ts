import { LEASES, NODE_LEASE_NAMESPACE } from "../../api/kubernetes/core-types.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import type { LeaseRecord } from "./lease-record.ts";
import { readLeaseRecord } from "./lease-record.ts";
import { overdueAfterMs } from "./silence.ts";

/** The lease of one node as this process has seen it. Times are monotonic: clocks are never compared. */
export interface SeenLease {
  uid: string;
  resourceVersion: string;
  durationMs: number;
  /** When this version was first seen, however that became known. */
  sinceMs: number;
}

/**
 * The leases of all nodes of the agent's own cluster, and since when each has not changed. Nothing is watched before
 * the first `start`. Any change counts as a renewal, since that is the safe side.
 */
export class KubeletLeases {
  readonly #runtime: KubeRuntime;
  readonly #seen = new Map<string, SeenLease>();
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
        this.#seen.clear();
      },
      { once: true },
    );
  }

  /** Whether the leases have been read in full. */
  get synced(): boolean {
    return this.#view?.synced === true;
  }

  /** What is known of the lease of a node; undefined if there is none, or if leases are not watched. */
  of(nodeName: string): SeenLease | undefined {
    this.#forgetAfterRewind();
    return this.#seen.get(nodeName);
  }

  /** Names of nodes whose renewal is overdue, by what this process has seen. */
  *overdue(): Generator<string> {
    this.#forgetAfterRewind();
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [name, seen] of this.#seen) if (nowMs - seen.sinceMs > overdueAfterMs(seen.durationMs)) yield name;
  }

  /** Reads the lease of a node live, so that a watch that lags shows no silence. Undefined if there is none. */
  async readLive(nodeName: string, signal: AbortSignal): Promise<SeenLease | undefined> {
    try {
      const key = { namespace: NODE_LEASE_NAMESPACE, name: nodeName };
      this.#take(readLeaseRecord(await this.#runtime.client.get<KubeObject>(LEASES, key, signal)));
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
      this.#seen.delete(nodeName);
    }
    return this.of(nodeName);
  }

  #observe(change: Change<LeaseRecord>): void {
    this.#forgetAfterRewind();
    if (change.type === "deleted") this.#seen.delete(change.object.metadata.name);
    else this.#take(change.object);
  }

  /** A version other than the last one is a change, whichever of them is the later one. */
  #take({ metadata: { name, uid, resourceVersion }, durationMs }: LeaseRecord): void {
    const known = this.#seen.get(name);
    if (known?.uid === uid && known.resourceVersion === resourceVersion) return;
    this.#seen.set(name, { uid, resourceVersion, durationMs, sinceMs: this.#runtime.clock.monotonicMs() });
  }

  /** After etcd was restored, versions are of another history: all silence begins again. */
  #forgetAfterRewind(): void {
    const rewinds = this.#view?.rewinds;
    if (rewinds === this.#rewinds) return;
    this.#rewinds = rewinds;
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [name, seen] of this.#seen) this.#seen.set(name, { ...seen, sinceMs: nowMs });
  }
}
