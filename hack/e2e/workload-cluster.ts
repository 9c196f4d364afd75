import { readFile } from "node:fs/promises";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { startControlPlane } from "../control-plane/control-plane.ts";
import { applyManifests, applyObject } from "../lib/apply.ts";
import type { KubeApi } from "../lib/kube-api.ts";
import { repositoryPath } from "./world.ts";

/** The namespace of Clusters, Machines and kubeconfigs in the management cluster. */
export const CLUSTER_NAMESPACE = "default";

const NODE_MONITOR_GRACE_PERIOD_MS = 8_000;

/** A second control plane that the management cluster knows as a workload cluster of Cluster API. */
export interface WorkloadCluster {
  readonly name: string;
  readonly controlPlane: ControlPlane;
  /** Creates the Secret `<cluster>-kubeconfig` with the certificate of an administrator. */
  publish(management: KubeApi, namespace?: string): Promise<void>;
  /**
   * Creates the same Secret with a token of a ServiceAccount that is an administrator, and that ServiceAccount if it
   * does not exist. @returns the file with this kubeconfig.
   */
  publishToken(management: KubeApi, serviceAccount: string): Promise<string>;
  /** Invalidates all tokens of a ServiceAccount. */
  revoke(serviceAccount: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the control plane of a workload cluster. The management cluster knows nothing of it until it is published. */
export async function startWorkloadCluster(name: string, signal: AbortSignal): Promise<WorkloadCluster> {
  const progress = (line: string): void => void process.stderr.write(`e2e: workload cluster ${name}: ${line}\n`);
  const controlPlane = await startControlPlane(
    { progress, nodeMonitorGracePeriodMs: NODE_MONITOR_GRACE_PERIOD_MS },
    signal,
  );
  const { api } = controlPlane;
  const publishFile = async (management: KubeApi, path: string, namespace = CLUSTER_NAMESPACE): Promise<void> => {
    const value = (await readFile(path)).toString("base64");
    await applyManifests(management, repositoryPath("examples/workload-cluster-kubeconfigs.yaml"), (manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, namespace },
    }));
    await applyObject(management, {
      apiVersion: "v1",
      kind: "Secret",
      type: "cluster.x-k8s.io/secret",
      metadata: {
        namespace,
        name: `${name}-kubeconfig`,
        labels: { "cluster.x-k8s.io/cluster-name": name },
      },
      data: { value },
    });
  };
  return {
    name,
    controlPlane,
    publish: (management, namespace) => publishFile(management, controlPlane.kubeconfig, namespace),
    publishToken: async (management, serviceAccount) => {
      await applyObject(api, {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { namespace: "default", name: serviceAccount },
      });
      await applyObject(api, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name: serviceAccount },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
        subjects: [{ kind: "ServiceAccount", namespace: "default", name: serviceAccount }],
      });
      const file = await controlPlane.serviceAccountKubeconfig("default", serviceAccount);
      await publishFile(management, file);
      return file;
    },
    revoke: (serviceAccount) => api.delete(`/api/v1/namespaces/default/serviceaccounts/${serviceAccount}`),
    stop: () => controlPlane.stop(),
  };
}
