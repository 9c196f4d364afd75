import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { ClusterRef, WorkloadClusters } from "../../../clusters/workload-clusters.ts";
import type { Change, Watched } from "../../../kube/watched.ts";
import { keyText, nameOf, parseKey } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { isHistoryFull, readAttempts } from "../../shared/model/attempts.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { CheckStates } from "../../shared/views/check-states.ts";
import type { MonotonicTimes } from "../../shared/views/watched-nodes/condition-times.ts";
import type { CompiledMachineCheck, MachineCheckState, JudgmentSources } from "./check-state.ts";
import { judgeNow, newMachineCheckState, machineCheckKey } from "./check-state.ts";
import { ClusterNodes } from "./cluster-nodes.ts";
import type { MachineCheckSnapshot } from "../decide/decision.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";
import { takeMachineSnapshot } from "./snapshot.ts";
import type { MachinePolicy } from "../decide/policy.ts";
import type { ObservedNode } from "../decide/observed-machine.ts";

/**
 * If the views of Machines or Clusters have received nothing for this long, no remediation starts. A bookmark arrives
 * every minute even if nothing changes.
 */
const VIEW_STALE_MS = 180_000;

export interface MachineChecksDeps {
  kind: MachineHealthCheckKind;
  clock: Clock;
  /** The clock by which Machines are judged. */
  times: MonotonicTimes;
  clusters: WorkloadClusters;
  checks: Watched<MachineHealthCheck>;
  machines: Watched<Machine>;
  /** Undefined if the vendor has no Clusters. */
  clusterObjects: Watched<Cluster> | undefined;
  remediations: RemediationStore;
  /** Since when the FencingTarget of the Machine's node has been Ready; undefined if it is not Ready. */
  fenceableSinceMs: (machine: Machine) => number | undefined;
  /** Is called with the `namespace/name` of a health check whose decision may have changed. */
  onChange: (check: string) => void;
}

/** What the agent knows about each MachineHealthCheck. It is updated when Machines, Clusters and nodes change. */
export class MachineChecks {
  readonly #deps: MachineChecksDeps;
  readonly #states: CheckStates<MachineHealthCheck, MachineCheckState>;
  /** By `namespace/name` of the cluster. */
  readonly #nodes = new Map<string, ClusterNodes>();
  readonly sources: JudgmentSources;

  constructor(deps: MachineChecksDeps) {
    this.#deps = deps;
    this.sources = {
      kind: deps.kind,
      nowMs: () => deps.times.nowMs(),
      clusterOf: (check) => this.clusterOf(check),
      nodesOf: (check) => this.nodesOf(check),
    };
    this.#states = new CheckStates({
      keyOf: machineCheckKey,
      make: (check, before) => {
        const state = newMachineCheckState(this.sources, check, deps.machines.values());
        state.announced = before?.announced ?? state.announced;
        return state;
      },
    });
    deps.machines.subscribe((change) => this.#onMachine(change));
    deps.clusterObjects?.subscribe((change) => this.#onCluster(change));
  }

  /** The state of this health check with this spec; a new one if there is none. */
  of(check: MachineHealthCheck): MachineCheckState {
    return this.#states.of(check);
  }

  /** The policies of all health checks whose spec is valid. */
  *policies(): IterableIterator<MachinePolicy> {
    for (const [, { compiled }] of this.#states.entries()) if ("policy" in compiled) yield compiled.policy;
  }

  forget(check: string): void {
    this.#states.forget(check);
    const used = new Set([...this.#deps.checks.values()].map((other) => keyText(clusterRef(other))));
    for (const [cluster, nodes] of this.#nodes) {
      if (used.has(cluster)) continue;
      nodes.close();
      this.#nodes.delete(cluster);
    }
  }

  /** The Cluster of a health check; undefined if there is none. */
  clusterOf(check: MachineHealthCheck): Cluster | undefined {
    return this.#deps.clusterObjects?.get(clusterRef(check));
  }

  nodesOf(check: MachineHealthCheck): ClusterNodes | undefined {
    return this.#nodes.get(keyText(clusterRef(check)));
  }

  /** Ensures that the nodes of a health check's cluster are watched if its API server exists. */
  holdNodes(check: MachineHealthCheck, cluster: Cluster | undefined): ClusterNodes | undefined {
    const known = this.nodesOf(check);
    if (known !== undefined || (cluster !== undefined && !cluster.controlPlaneInitialized)) return known;
    const ref = clusterRef(check);
    const key = keyText(ref);
    const onChange = (nodeName: string | undefined): void => this.#judge(key, nodeName);
    const nodes = new ClusterNodes({ ...this.#deps, onChange }, ref);
    this.#nodes.set(key, nodes);
    // Until now, its Machines were judged without their nodes.
    this.#judge(key);
    return nodes;
  }

  /**
   * @param template the resolved template; undefined if the health check names none.
   * @param starting the Machines whose remediation is being started at this moment.
   */
  snapshot(
    check: MachineHealthCheck,
    { policy, tracker }: CompiledMachineCheck,
    observations: MachineCheckState["observations"],
    template: MachineCheckSnapshot["template"],
    starting: Iterable<Machine>,
  ): MachineCheckSnapshot {
    tracker.advance(this.sources.nowMs());
    const attempts = readAttempts(check);
    return takeMachineSnapshot({
      check,
      policy,
      tracker,
      observationsOf: ({ metadata }) => observations.of(metadata.uid),
      template,
      remediations: [...this.#deps.remediations.values()],
      machineOf: (key) => this.#deps.machines.get(key),
      starting: [...starting],
      isUnhealthyToOthers: (machine) => this.#findOther(check, machine),
      fenceableSinceMs: (machine) => this.#deps.fenceableSinceMs(machine),
      attemptsOf: (key) => attempts.get(key) ?? [],
      isHistoryFull: isHistoryFull(check),
      blocked: this.blockedBy(check),
      unreachable: this.nodesOf(check)?.unreachable,
    });
  }

  /**
   * How many of the covered Machines are healthy by a recent live list of the nodes; undefined if there is no such
   * list.
   */
  healthyByList(check: MachineHealthCheck, { tracker }: CompiledMachineCheck): number | undefined {
    const liveNodes = this.nodesOf(check)?.liveNodes;
    if (liveNodes === undefined) return undefined;
    const cluster = this.clusterOf(check);
    const isHealthy = (name: string): boolean => {
      const { machine } = tracker.get(name) ?? {};
      if (machine === undefined) return false;
      const node = machine.nodeName === undefined ? undefined : liveNodes.get(machine.nodeName);
      const observed: ObservedNode = node === undefined ? { state: absence(machine) } : { state: "there", node };
      return judgeNow(this.sources, check, machine, cluster, observed).state === "healthy";
    };
    return tracker.names.filter(isHealthy).length;
  }

  /** Why nothing may start now although everything could be read, as text for the operator. */
  blockedBy(check: MachineHealthCheck): string | undefined {
    const { clock, machines, clusterObjects } = this.#deps;
    if (this.clusterOf(check)?.metadata.deletionTimestamp !== undefined) return "the cluster is being deleted";
    const lastMs = Math.min(machines.lastContactMs, clusterObjects?.lastContactMs ?? Infinity);
    const isStale = clock.monotonicMs() - lastMs > VIEW_STALE_MS;
    if (isStale) return "the API server has reported nothing about Machines for 3 minutes";
    return this.#isOtherCluster(check)
      ? "the cluster has Nodes, but none that a Machine names: check whether the kubeconfig points to another cluster"
      : undefined;
  }

  /** Whether the kubeconfig seems to point to another cluster. If so, the nodes of all Machines would look deleted. */
  #isOtherCluster(check: MachineHealthCheck): boolean {
    const { clusterObjects, machines } = this.#deps;
    // If the vendor has no Clusters, the Machines belong to the cluster that stores them.
    if (clusterObjects === undefined) return false;
    const { namespace, name } = clusterRef(check);
    const nodeNames = function* (): Generator<string> {
      for (const { metadata, clusterName, nodeName } of machines.values()) {
        if (metadata.namespace === namespace && clusterName === name && nodeName !== undefined) yield nodeName;
      }
    };
    return this.nodesOf(check)?.hasOnlyOthers(nodeNames()) === true;
  }

  close(): void {
    for (const nodes of this.#nodes.values()) nodes.close();
  }

  /** The name of another health check that finds the Machine unhealthy. */
  #findOther(check: MachineHealthCheck, machine: Machine): string | undefined {
    for (const [key, { compiled }] of this.#states.entries()) {
      if (key === nameOf(check) || "problem" in compiled) continue;
      const tracked = compiled.tracker.get(machine.metadata.name);
      if (tracked?.machine.metadata.uid === machine.metadata.uid && tracked.health.state === "unhealthy") return key;
    }
    return undefined;
  }

  #onMachine(change: Change<Machine>): void {
    const { namespace } = change.object.metadata;
    for (const [key, { compiled }] of this.#states.entries()) {
      if ("problem" in compiled || parseKey(key).namespace !== namespace) continue;
      if (compiled.tracker.observe(change)) this.#deps.onChange(key);
    }
  }

  #onCluster(change: Change<Cluster>): void {
    // Most changes of the status of a Cluster do not concern its Machines.
    if (change.type === "updated" && factsOf(change.previous) === factsOf(change.object)) return;
    this.#judge(nameOf(change.object));
  }

  /** Judges the Machines of a cluster again; with `nodeName`, only the Machines of that node. */
  #judge(cluster: string, nodeName?: string): void {
    for (const check of this.#deps.checks.values()) {
      if (keyText(clusterRef(check)) !== cluster) continue;
      const key = nameOf(check);
      const compiled = this.#states.get(key)?.compiled;
      if (compiled !== undefined && "tracker" in compiled) {
        if (nodeName === undefined) compiled.tracker.judgeAll();
        else if (!compiled.tracker.observeNode(nodeName)) continue;
      }
      this.#deps.onChange(key);
    }
  }
}

function absence({ nodeName }: Machine): "none" | "gone" {
  return nodeName === undefined ? "none" : "gone";
}

function clusterRef({ metadata, spec }: MachineHealthCheck): ClusterRef {
  return { namespace: metadata.namespace, name: spec.clusterName };
}

/** The fields of a Cluster by which its Machines are judged. */
function factsOf({ metadata, paused, ...rest }: Cluster): string {
  const { infrastructureReady, infrastructureReadySince, controlPlaneInitialized, controlPlaneInitializedSince } = rest;
  const ready = [infrastructureReady, infrastructureReadySince, controlPlaneInitialized, controlPlaneInitializedSince];
  return JSON.stringify([metadata.uid, metadata.deletionTimestamp, paused, ...ready]);
}
