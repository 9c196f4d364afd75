import type { WorkloadClusters } from "../../src/clusters/workload-clusters.ts";

/** For tests in which all nodes lie in one cluster. */
export const NO_WORKLOAD_CLUSTERS: WorkloadClusters = {
  hold: (ref) => ({
    ref,
    connection: { state: "away", reason: "KubeconfigMissing", message: "there is no such cluster", sinceMs: 0 },
    release: () => undefined,
  }),
};
