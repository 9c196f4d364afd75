import type { Clock } from "../../../src/runtime/clock.ts";
import type { ApiServer } from "../api-server.ts";
import { startGarbageCollector } from "./garbage-collector.ts";
import { startNamespaces } from "./namespaces.ts";
import { startNodeLifecycle } from "./node-lifecycle.ts";
import { startPodGc } from "./pod-gc.ts";
import { PodIndex } from "./pod-index.ts";
import { startScheduler } from "./scheduler.ts";
import { startStatefulSets } from "./stateful-sets.ts";
import { startTaintEviction } from "./taint-eviction.ts";
import { startVolumes } from "./volumes.ts";
import type { VolumeOptions } from "./volumes.ts";

/** Which stand-ins run (`false` switches one off), and how slow they are. */
export interface ClusterControllerOptions {
  /** Ready=Unknown and condition taints for nodes whose lease and status went silent. */
  nodeLifecycle: { monitorPeriodMs: number; monitorGracePeriodMs: number } | false;
  /** Deletes pods that do not tolerate a NoExecute taint, after their tolerationSeconds. */
  taintEviction: { lagMs: number } | false;
  /** Sweeps terminating pods of out-of-service nodes and pods of nodes that are gone. */
  podGc: { periodMs: number; quarantineMs: number } | false;
  /** Creates the pods (and claims) of StatefulSets; no replacement while the old Pod object exists. */
  statefulSets: { lagMs: number } | false;
  /** Binds pending pods to Ready nodes whose taints they tolerate. */
  scheduler: { lagMs: number } | false;
  /** VolumeAttachments follow pods with volumes; a claim gets a volume of its own. */
  volumes: VolumeOptions | false;
  /** Collects objects whose owners are gone. */
  garbageCollector: { lagMs: number } | false;
  /** Empties and removes namespaces that are being deleted. */
  namespaces: { lagMs: number } | false;
}

/** Kubernetes' own periods, and lags as they are seen on a quiet cluster. */
const DEFAULT_CLUSTER_CONTROLLER_OPTIONS: ClusterControllerOptions = {
  nodeLifecycle: { monitorPeriodMs: 5_000, monitorGracePeriodMs: 50_000 },
  taintEviction: { lagMs: 20 },
  podGc: { periodMs: 20_000, quarantineMs: 40_000 },
  statefulSets: { lagMs: 20 },
  scheduler: { lagMs: 20 },
  volumes: { attachLagMs: 500, detachLagMs: 500, forceDetachMs: 360_000 },
  garbageCollector: { lagMs: 100 },
  namespaces: { lagMs: 100 },
};

/**
 * Starts stand-ins for the controllers of kube-controller-manager and for the scheduler, on `clock`. Kubelets are not
 * among them: the test that plays them creates Nodes, renews Leases in `kube-node-lease`, writes node and pod status,
 * and force-deletes terminating pods, as a client.
 *
 * @returns stops them all; nothing of them is left on the clock afterwards.
 */
export function startClusterControllers(
  { server, clock }: { server: ApiServer; clock: Clock },
  options: Partial<ClusterControllerOptions> = {},
): () => void {
  const chosen = { ...DEFAULT_CLUSTER_CONTROLLER_OPTIONS, ...options };
  const podIndex = new PodIndex(server);
  const deps = { server, clock, podIndex };
  const stops: (() => void)[] = [() => podIndex.stop()];
  if (chosen.nodeLifecycle !== false) stops.push(startNodeLifecycle(deps, chosen.nodeLifecycle));
  if (chosen.taintEviction !== false) stops.push(startTaintEviction(deps, chosen.taintEviction));
  if (chosen.podGc !== false) stops.push(startPodGc(deps, chosen.podGc));
  if (chosen.statefulSets !== false) stops.push(startStatefulSets(deps, chosen.statefulSets));
  if (chosen.scheduler !== false) stops.push(startScheduler(deps, chosen.scheduler));
  if (chosen.volumes !== false) stops.push(startVolumes(deps, chosen.volumes));
  if (chosen.garbageCollector !== false) stops.push(startGarbageCollector(deps, chosen.garbageCollector));
  if (chosen.namespaces !== false) stops.push(startNamespaces(deps, chosen.namespaces));
  return () => {
    for (const stop of stops) stop();
  };
}
