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
  /** The runtime of the cluster that stores the health checks and Machines. */
  runtime: KubeRuntime;
  /** The clusters of the nodes of the Machines. */
  clusters: WorkloadClusters;
  kind: MachineHealthCheckKind;
  /** The agent's own namespace, the only one in which FencingTargets are read. */
  namespace: string;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
  /** The metrics that only this vendor has. */
  metrics?: MachineMetrics;
  listener?: RemediationListener | undefined;
  /** The log of decisions; undefined if none is written. */
  recorder?: DecisionRecorder | undefined;
  /** Counts the health checks, for the metric that all vendors share. */
  count?: FamilyCount;
  /** Receives which nodes of the agent's own cluster the health checks cover. */
  coverage?: HealthCheckCoverage | undefined;
  /** The Cluster that the agent runs in, if a Cluster object describes it. */
  ownCluster?: ClusterRef | undefined;
}

/**
 * Serves every MachineHealthCheck of one vendor until `signal` aborts. When the promise has settled, all work has
 * ended. Call it only while the agent lease is held, with a signal that aborts when the lease is lost.
 */
export async function runMachineHealthChecks(deps: MachineHealthChecksDeps, signal: AbortSignal): Promise<void> {
  // A separate AbortController ends the watches together with this function, also if it throws.
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
    zoneLabel,
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
    zoneLabel,
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
