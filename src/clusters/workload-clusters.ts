import type { Node } from "../api/core.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { ClusterAccess } from "../kube/credentials.ts";
import type { Watched } from "../kube/watched.ts";

/** A Cluster of Cluster API, by name. */
export interface ClusterRef {
  namespace: string;
  name: string;
}

/** Why a workload cluster cannot be reached. */
export type AwayReason = "KubeconfigMissing" | "KubeconfigInvalid" | "Unreachable" | "Unauthorized";

/** How a workload cluster can be worked with at present. */
export type ClusterConnection =
  /** Not known yet. */
  | { state: "connecting" }
  /** `nodes` are listed in full and not old. The runtime stays the same object until its kubeconfig is replaced. */
  | { state: "connected"; runtime: KubeRuntime; nodes: Watched<Node> }
  /** `message` is for people, without credentials; `sinceMs` by the wall clock. */
  | { state: "away"; reason: AwayReason; message: string; sinceMs: number };

/** One holder's hand on a workload cluster. */
export interface HeldCluster {
  readonly ref: ClusterRef;
  /** As it is now: read it anew each time. */
  readonly connection: ClusterConnection;
  /** To be called once, when it is not needed any more. */
  release(): void;
}

/** The workload clusters of a management cluster, each connected for as long as somebody holds it. */
export interface WorkloadClusters {
  /**
   * Connects to a cluster, or joins those who have.
   *
   * @param onChange is called after each change of `connection`, never from within `hold`.
   */
  hold(ref: ClusterRef, onChange: () => void): HeldCluster;
}

export interface WorkloadClustersDeps {
  /** Of the management cluster, where the `<cluster>-kubeconfig` Secrets lie. */
  runtime: KubeRuntime;
  /** Opens the wire to a workload cluster; its writes must be guarded as those to the management cluster are. */
  openTransport: (cluster: ClusterAccess) => KubeTransport;
}

/** @param signal ends every connection. */
export function createWorkloadClusters(_deps: WorkloadClustersDeps, _signal: AbortSignal): WorkloadClusters {
  return {
    hold: (ref) => ({ ref, connection: { state: "connecting" }, release: () => undefined }),
  };
}
