import type { BareMetalRemediationStatus } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { LEASES, NODE_LEASE_NAMESPACE, NODES, PODS } from "../../../api/kubernetes/core-types.ts";
import type { Lease, Node, Pod } from "../../../api/kubernetes/core.ts";
import { isRecord } from "../../../runtime/record.ts";
import { SparseMap } from "../../../runtime/sparse-map.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Subject } from "../../../nodes/subject.ts";
import { machineResource } from "../../../nodes/subject.ts";
import type { NodeCluster } from "../../clusters/node-clusters.ts";
import { readAnyMachine } from "../../machine-objects/read-machine.ts";
import type { KdumpMessages } from "../../kdump/kdump-messages.ts";
import type { RemediationEvent } from "../../machine/model/facts/event.ts";
import type { Observations } from "../../machine/model/facts/observations.ts";
import type { Now } from "../../machine/model/facts/snapshot.ts";
import type { State } from "../../machine/model/decision/state.ts";
import { statesBetween } from "../../machine/model/decision/state.ts";
import type { LeaseVersion } from "../../machine/model/decision/strategy.ts";

type WatchName = "lease" | "pods" | "machine" | "kdump";

/** Addresses of one node from which messages of its crash kernel are taken. */
const ADDRESSES_MAX = 32;
/**
 * At most one message of a crash kernel is recorded in this time, so that a flood of them does not fill the log of
 * decisions.
 */
const KDUMP_COUNTED_MS = 1_000;

const WATCHES_LEASE: readonly State["name"][] = statesBetween("Verifying", "Undoing");

/** What the watches need of a session: they read its facts and report events to it. */
interface WatchingSession {
  readonly subject: Subject;
  /** The cluster of the node. */
  readonly cluster: NodeCluster;
  readonly status: BareMetalRemediationStatus;
  readonly observations: Observations;
  readonly provenLease: LeaseVersion | undefined;
  observe(event: RemediationEvent): void;
  now(): Now;
}

/** The watches that wake one remediation. They end with `close`. */
export class SessionWatches {
  readonly #session: WatchingSession;
  readonly #ownRuntime: KubeRuntime;
  readonly #wake: () => void;
  readonly #kdump: KdumpMessages | undefined;
  readonly #watches = new SparseMap<WatchName, { of: string; runtime: KubeRuntime; stop: AbortController }>();

  /** @param ownRuntime of the cluster with the remediation and its Machine. The node may be in another cluster. */
  constructor(session: WatchingSession, ownRuntime: KubeRuntime, wake: () => void, kdump: KdumpMessages | undefined) {
    this.#session = session;
    this.#ownRuntime = ownRuntime;
    this.#wake = wake;
    this.#kdump = kdump;
  }

  /**
   * Starts and ends the watches that the state needs: the node's lease, its pods while they are released, the Machine
   * until it names its node, and the messages of the crash kernel after an NMI was ordered.
   */
  keep(state: State["name"], signal: AbortSignal): void {
    const { nodeName, machine } = this.#session.subject;
    const { runtime, problem } = this.#session.cluster;
    const inReach = problem === undefined ? nodeName : undefined;
    const named = nodeName === undefined && state === "Rejoining" ? machine : undefined;
    const awaitsDump = state === "Verifying" && this.#session.status.diagnostics !== undefined;
    const crashing = awaitsDump && this.#kdump !== undefined ? inReach : undefined;
    this.#keepWatch("kdump", crashing, runtime, signal);
    this.#keepWatch("lease", WATCHES_LEASE.includes(state) ? inReach : undefined, runtime, signal);
    this.#keepWatch("pods", state === "Releasing" ? inReach : undefined, runtime, signal);
    this.#keepWatch("machine", named?.uid, this.#ownRuntime, signal);
  }

  /**
   * @param of identifies what is watched; undefined ends the watch. Another object or another connection restarts it.
   */
  #keepWatch(name: WatchName, of: string | undefined, runtime: KubeRuntime, signal: AbortSignal): void {
    const present = this.#watches.get(name);
    if (present?.of === of && present?.runtime === runtime) return;
    present?.stop.abort();
    this.#watches.delete(name);
    if (of === undefined) return;
    const stop = new AbortController();
    this.#watches.set(name, { of, runtime, stop });
    this.#start(name, runtime, of, AbortSignal.any([signal, stop.signal]));
  }

  #start(name: WatchName, runtime: KubeRuntime, of: string, signal: AbortSignal): void {
    if (name === "lease") this.#watchLease(runtime, of, signal);
    else if (name === "pods") this.#watchPods(runtime, of, signal);
    else if (name === "machine") this.#watchMachine(runtime, of, signal);
    else this.#watchKdump(runtime, of, signal);
  }

  #watchLease(runtime: KubeRuntime, nodeName: string, signal: AbortSignal): void {
    const leases = runtime.watch<Lease>(
      {
        type: LEASES,
        namespace: NODE_LEASE_NAMESPACE,
        fieldSelector: `metadata.name=${nodeName}`,
        trim: (raw) => (raw.metadata.name === nodeName ? (raw as Lease) : undefined),
      },
      signal,
    );
    leases.subscribe((change) => {
      if (change.type === "deleted") return;
      const known = this.#session.observations.lease;
      const { cluster, provenLease: proven } = this.#session;
      const contact = cluster.runtime.contact();
      const atMs = this.#session.now().monotonicMs;
      this.#session.observe({ type: "LeaseRead", lease: change.object, readAtMs: undefined, contact, atMs, proven });
      if (this.#session.observations.lease?.renewedAtMs !== known?.renewedAtMs) this.#wake();
    });
  }

  #watchPods(runtime: KubeRuntime, nodeName: string, signal: AbortSignal): void {
    const pods = runtime.watch<Pod>({ type: PODS, fieldSelector: `spec.nodeName=${nodeName}`, trim: trimPod }, signal);
    pods.subscribe((change) => {
      if (change.type !== "deleted" || this.#session.observations.drain === undefined) return;
      this.#session.observe({ type: "PodGone" });
      this.#wake();
    });
  }

  #watchMachine(runtime: KubeRuntime, uid: string, signal: AbortSignal): void {
    const { machine } = this.#session.subject;
    if (machine === undefined) return;
    const { namespace, name } = machine;
    const machines = runtime.watch<Machine>(
      {
        type: machineResource(machine),
        namespace,
        fieldSelector: `metadata.name=${name}`,
        trim: (raw) => (raw.metadata.uid === uid ? readAnyMachine(raw) : undefined),
      },
      signal,
    );
    machines.subscribe((change) => {
      if (change.type === "deleted" || change.object.nodeName === undefined) return;
      const atMs = this.#session.now().monotonicMs;
      this.#session.observe({ type: "MachineRead", machine: { found: true, machine: change.object }, atMs });
      this.#wake();
    });
  }

  /** No cache keeps the addresses of nodes, so this watch reads those of the node. */
  #watchKdump(runtime: KubeRuntime, nodeName: string, signal: AbortSignal): void {
    const nodes = runtime.watch<Node>(
      {
        type: NODES,
        fieldSelector: `metadata.name=${nodeName}`,
        trim: (raw) => (raw.metadata.name === nodeName ? trimToAddresses(raw) : undefined),
      },
      signal,
    );
    let unfollow = (): void => undefined;
    signal.addEventListener("abort", () => unfollow(), { once: true });
    nodes.subscribe((change) => {
      if (change.type === "deleted" || signal.aborted) return;
      unfollow();
      const addresses = (change.object.status.addresses ?? []).map(({ address }) => address);
      unfollow = this.#kdump?.follow(addresses, () => this.#receiveKdump()) ?? unfollow;
    });
  }

  #receiveKdump(): void {
    const known = this.#session.observations.kdump;
    const atMs = this.#session.now().monotonicMs;
    if (known !== undefined && atMs - known.lastAtMs < KDUMP_COUNTED_MS) return;
    this.#session.observe({ type: "KdumpReceived", atMs });
    if (known === undefined) this.#wake();
  }

  close(): void {
    for (const { stop } of this.#watches.values()) stop.abort();
    this.#watches.clear();
  }
}

/**
 * Keeps a bounded number of valid addresses, because neither the API server of a workload cluster nor the kubelet that
 * reports the addresses is trusted.
 */
function trimToAddresses(raw: KubeObject): Node {
  const { name, uid, resourceVersion } = raw.metadata;
  const reported: unknown = (raw as Partial<Node>).status?.addresses;
  const addresses = (Array.isArray(reported) ? reported.slice(0, ADDRESSES_MAX) : []).filter(isAddress);
  const { apiVersion, kind } = raw;
  return { apiVersion, kind, metadata: { name, uid, resourceVersion }, spec: {}, status: { addresses } };
}

function isAddress(value: unknown): value is { type: string; address: string } {
  return isRecord(value) && typeof value["address"] === "string";
}

function trimPod(raw: KubeObject): Pod {
  const { metadata } = raw as Pod;
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion: raw.apiVersion, kind: raw.kind, metadata: { name, namespace, uid, resourceVersion }, spec: {} };
}
