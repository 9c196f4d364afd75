import type { Node } from "../api/kubernetes/core.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";
import type { ClusterConnection, ClusterRef } from "./connection.ts";
import type { WorkloadClusters } from "./workload-clusters.ts";

/**
 * How long the API server may have reported nothing about nodes: their earlier state does not show their present one.
 */
const NODES_STALE_MS = 180_000;

/**
 * The cluster that the agent lives in, instead of workload clusters: for kinds whose machines are of the same cluster
 * that they are objects of.
 */
export function ownCluster(runtime: KubeRuntime, nodes: Watched<Node>, signal: AbortSignal): WorkloadClusters {
  const listeners = new Set<() => void>();
  const notifyListeners = (): void => {
    for (const listener of listeners) listener();
  };
  void nodes.whenSynced(signal).then(notifyListeners, () => undefined);
  return {
    hold: (ref, onChange) => {
      // Of its own, so that one function may hold twice.
      const listener = (): void => onChange();
      listeners.add(listener);
      return {
        ref,
        get connection() {
          return connectionOf(runtime, nodes);
        },
        release: () => void listeners.delete(listener),
      };
    },
  };
}

/**
 * Workload clusters of which one, by name, is the cluster that the agent lives in: a management cluster that manages
 * itself. It is worked with by the agent's own connection, and its kubeconfig is not read: so writing it gives no one
 * the permissions of the agent.
 */
export function withOwnCluster(name: ClusterRef, own: WorkloadClusters, others: WorkloadClusters): WorkloadClusters {
  return { hold: (ref, onChange) => (isSameCluster(ref, name) ? own : others).hold(ref, onChange) };
}

export function isSameCluster(a: ClusterRef, b: ClusterRef | undefined): boolean {
  return a.namespace === b?.namespace && a.name === b.name;
}

function connectionOf(runtime: KubeRuntime, nodes: Watched<Node>): ClusterConnection {
  if (!nodes.synced) return { state: "connecting" };
  const { clock } = runtime;
  const silentMs = clock.monotonicMs() - nodes.lastContactMs;
  if (silentMs <= NODES_STALE_MS) return { state: "connected", runtime, nodes };
  const message = "the API server has reported nothing about nodes for minutes";
  return { state: "disconnected", reason: "Unreachable", message, sinceMs: clock.nowMs() - silentMs };
}
