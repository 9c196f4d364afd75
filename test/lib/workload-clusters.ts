import type { Node } from "../../src/api/kubernetes/core.ts";
import type { WorkloadClusters } from "../../src/clusters/workload-clusters.ts";
import type { KubeRuntime } from "../../src/kube/runtime.ts";
import type { Watched } from "../../src/kube/watched.ts";
import { NodeClusters } from "../../src/remediator/clusters/node-clusters.ts";

/** For tests in which all nodes belong to one cluster. */
export const NO_WORKLOAD_CLUSTERS: WorkloadClusters = {
  hold: (ref) => ({
    ref,
    connection: { state: "disconnected", reason: "KubeconfigMissing", message: "there is no such cluster", sinceMs: 0 },
    release: () => undefined,
  }),
};

/** One cluster, for tests that read no watched nodes. */
export function oneCluster(runtime: KubeRuntime): NodeClusters {
  const nodes = { get: () => undefined, values: () => [].values() } as unknown as Watched<Node>;
  return new NodeClusters({ runtime, nodes, clusters: NO_WORKLOAD_CLUSTERS });
}
