import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { LEASES, NODE_LEASE_NAMESPACE, PODS } from "../../../api/kubernetes/core-types.ts";
import type { Lease, Pod } from "../../../api/kubernetes/core.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Subject } from "../../../nodes/subject.ts";
import { machineResource } from "../../../nodes/subject.ts";
import type { NodeCluster } from "../../clusters/node-clusters.ts";
import { readAnyMachine } from "../../machine-objects/read-machine.ts";
import type { RemediationEvent } from "../../machine/model/facts/event.ts";
import type { Observations } from "../../machine/model/facts/observations.ts";
import type { Now } from "../../machine/model/facts/snapshot.ts";
import type { State } from "../../machine/model/decision/state.ts";
import type { LeaseVersion } from "../../machine/model/decision/strategy.ts";

type WatchName = "lease" | "pods" | "machine";

const WATCHES_LEASE: readonly State["name"][] = [
  "Verifying",
  "PoweringOff",
  "Releasing",
  "Provisioning",
  "PoweringOn",
  "Rejoining",
  "Restoring",
  "Undoing",
];

/** What the watches read of a session, and where they report events. */
interface WatchingSession {
  readonly subject: Subject;
  /** The cluster of the node. */
  readonly cluster: NodeCluster;
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
  readonly #watches = new Map<WatchName, { of: string; runtime: KubeRuntime; stop: AbortController }>();

  /** @param ownRuntime of the cluster that holds the remediation, and its Machine; its node may lie in another one. */
  constructor(session: WatchingSession, ownRuntime: KubeRuntime, wake: () => void) {
    this.#session = session;
    this.#ownRuntime = ownRuntime;
    this.#wake = wake;
  }

  /**
   * Starts and ends the watches that the state needs: the node's lease, its pods while they are to leave, and the
   * Machine while it has not named its node.
   */
  keep(state: State["name"], signal: AbortSignal): void {
    const { nodeName, machine } = this.#session.subject;
    const { runtime, problem } = this.#session.cluster;
    const inReach = problem === undefined ? nodeName : undefined;
    const named = nodeName === undefined && state === "Rejoining" ? machine : undefined;
    this.#keepWatch("lease", WATCHES_LEASE.includes(state) ? inReach : undefined, runtime, signal, this.#watchLease);
    this.#keepWatch("pods", state === "Releasing" ? inReach : undefined, runtime, signal, this.#watchPods);
    this.#keepWatch("machine", named?.uid, this.#ownRuntime, signal, this.#watchMachine);
  }

  /** @param of what it watches: another object, or another connection, begins it again; undefined ends it. */
  #keepWatch(
    name: WatchName,
    of: string | undefined,
    runtime: KubeRuntime,
    signal: AbortSignal,
    start: (runtime: KubeRuntime, of: string, signal: AbortSignal) => void,
  ): void {
    const present = this.#watches.get(name);
    if (present?.of === of && present?.runtime === runtime) return;
    present?.stop.abort();
    this.#watches.delete(name);
    if (of === undefined) return;
    const stop = new AbortController();
    this.#watches.set(name, { of, runtime, stop });
    start(runtime, of, AbortSignal.any([signal, stop.signal]));
  }

  readonly #watchLease = (runtime: KubeRuntime, nodeName: string, signal: AbortSignal): void => {
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
  };

  readonly #watchPods = (runtime: KubeRuntime, nodeName: string, signal: AbortSignal): void => {
    const pods = runtime.watch<Pod>({ type: PODS, fieldSelector: `spec.nodeName=${nodeName}`, trim: trimPod }, signal);
    pods.subscribe((change) => {
      if (change.type !== "deleted" || this.#session.observations.drain === undefined) return;
      this.#session.observe({ type: "PodGone" });
      this.#wake();
    });
  };

  readonly #watchMachine = (runtime: KubeRuntime, uid: string, signal: AbortSignal): void => {
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
  };

  close(): void {
    for (const { stop } of this.#watches.values()) stop.abort();
    this.#watches.clear();
  }
}

function trimPod(raw: KubeObject): Pod {
  const { metadata } = raw as Pod;
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion: raw.apiVersion, kind: raw.kind, metadata: { name, namespace, uid, resourceVersion }, spec: {} };
}
