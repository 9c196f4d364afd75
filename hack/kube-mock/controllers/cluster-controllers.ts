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

/** Delays of the simulated controllers; `false` disables one. */
export interface ClusterControllerOptions {
  /** Sets Ready=Unknown and condition taints on nodes whose lease and status are no longer updated. */
  nodeLifecycle: { monitorPeriodMs: number; monitorGracePeriodMs: number } | false;
  /** Deletes pods that do not tolerate a NoExecute taint, after their tolerationSeconds. */
  taintEviction: { lagMs: number } | false;
  /** Deletes terminating pods of out-of-service nodes, and pods of deleted nodes. */
  podGc: { periodMs: number; quarantineMs: number } | false;
  /** Creates the pods and claims of StatefulSets. It replaces a pod only when the old Pod object is gone. */
  statefulSets: { lagMs: number } | false;
  /** Binds pending pods to Ready nodes whose taints they tolerate. */
  scheduler: { lagMs: number } | false;
  /** Creates and deletes VolumeAttachments for pods with volumes, and a volume for each claim. */
  volumes: VolumeOptions | false;
  /** Collects objects whose owners are gone. */
  garbageCollector: { lagMs: number } | false;
  /** Empties and removes namespaces that are being deleted. */
  namespaces: { lagMs: number } | false;
}

/** The periods of Kubernetes, and the delays of an idle cluster. */
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
 * Starts simulated controllers of kube-controller-manager and a scheduler, on `clock`. It starts no kubelets: a test
 * does their work as a client. It creates Nodes, renews Leases in `kube-node-lease`, writes node and pod status, and
 * force-deletes terminating pods.
 *
 * @returns a function that stops all of them and leaves no timers on the clock.
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
