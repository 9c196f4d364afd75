import type { Node } from "../api/kubernetes/core.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { Watched } from "../kube/watched.ts";
import type { ClusterConnection, ClusterRef } from "./connection.ts";
import type { WorkloadClusters } from "./workload-clusters.ts";

/**
 * If the API server has reported nothing about nodes for this long, the cluster counts as disconnected, because the
 * state of its nodes may have changed.
 */
const NODES_STALE_MS = 180_000;

/**
 * The agent's own cluster in the form of workload clusters. It is for kinds of Machines whose nodes belong to the
 * cluster in which the Machines are stored.
 */
export function ownCluster(runtime: KubeRuntime, nodes: Watched<Node>, signal: AbortSignal): WorkloadClusters {
  const listeners = new Set<() => void>();
  const notifyListeners = (): void => {
    for (const listener of listeners) listener();
  };
  void nodes.whenSynced(signal).then(notifyListeners, () => undefined);
  return {
    hold: (ref, onChange) => {
      // A new function, so that the same `onChange` may be passed twice.
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
 * Workload clusters, one of which is the agent's own cluster: a management cluster that manages itself. For that one,
 * the agent uses its own connection and does not read the kubeconfig, so that a user who can write the kubeconfig does
 * not get the permissions of the agent.
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
  const message = "the API server has reported nothing about nodes for 3 minutes";
  return { state: "disconnected", reason: "Unreachable", message, sinceMs: clock.nowMs() - silentMs };
}
