import type { ClusterRef, WorkloadClusters } from "../../clusters/workload-clusters.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { awaitServed } from "../../kube/objects/served-kind.ts";
import type { Watched } from "../../kube/watched.ts";
import type { HealthCheckCoverage } from "../../nodes/health-check-coverage.ts";
import type { RemediationListener } from "../shared/model/started-remediation.ts";
import type { DecisionRecorder } from "../../telemetry/decisions/recorder.ts";
import type { FamilyCount } from "./effects/machine-check-counts.ts";
import type { MachineMetrics } from "./effects/metrics.ts";
import { machineCoverage } from "./snapshot/coverage.ts";
import { MachineHealthCheckController } from "./controller.ts";
import type { MachineHealthCheckKind } from "./decide/kind.ts";

export interface MachineHealthChecksDeps {
  /** Of the cluster that the health checks and machines are objects of. */
  runtime: KubeRuntime;
  /** Where the machines' nodes are. */
  clusters: WorkloadClusters;
  kind: MachineHealthCheckKind;
  /** The agent's own namespace, the only one in which FencingTargets are read. */
  namespace: string;
  /** What the vendor counts. */
  metrics?: MachineMetrics;
  listener?: RemediationListener | undefined;
  /** The log of decisions; undefined if none is written. */
  recorder?: DecisionRecorder | undefined;
  /** What is counted of every vendor. */
  count?: FamilyCount;
  /** Learns which nodes of the agent's own cluster the health checks cover. */
  coverage?: HealthCheckCoverage | undefined;
  /** The Cluster that the agent runs in, if it is one. */
  ownCluster?: ClusterRef | undefined;
}

/**
 * Serves every MachineHealthCheck of one kind until `signal` aborts; nothing runs any more when the promise has
 * settled. Call it only while the agent's lease is held, with a signal that aborts when the lease is lost.
 */
export async function runMachineHealthChecks(deps: MachineHealthChecksDeps, signal: AbortSignal): Promise<void> {
  // An AbortController of its own ends the watches with this function, also if it throws.
  const scope = new AbortController();
  const everything = AbortSignal.any([signal, scope.signal]);
  try {
    await serve(deps, everything);
  } catch (error) {
    // An abort is the only normal end.
    if (!signal.aborted) throw error;
  } finally {
    deps.count?.remove();
    scope.abort(new Error("the health checks over machines have ended"));
  }
}

async function serve(
  {
    runtime,
    clusters,
    kind,
    namespace,
    metrics,
    count,
    coverage,
    ownCluster,
    listener,
    recorder,
  }: MachineHealthChecksDeps,
  signal: AbortSignal,
): Promise<void> {
  const types = {
    checks: await awaitServed(runtime, kind.checks, signal),
    machines: await awaitServed(runtime, kind.machines, signal),
    clusters: kind.clusters && (await awaitServed(runtime, kind.clusters, signal)),
  };
  const watch = <T extends KubeObject>(type: ResourceType, trim: (raw: KubeObject) => T): Watched<T> =>
    runtime.watch({ type, trim }, signal);
  const checks = watch(types.checks, kind.readCheck);
  const machines = watch(types.machines, kind.readMachine);
  const clusterObjects = types.clusters && watch(types.clusters, kind.readCluster);
  for (const view of [checks, machines, clusterObjects]) await view?.whenSynced(signal);
  count?.add(checks);
  coverage?.add(() => machineCoverage({ kind, checks, machines, ownCluster }), signal);
  const deps = {
    runtime,
    clusters,
    kind,
    namespace,
    types,
    checks,
    machines,
    clusterObjects,
    metrics,
    listener,
    recorder,
  };
  await new MachineHealthCheckController(deps, signal).run(signal);
}
