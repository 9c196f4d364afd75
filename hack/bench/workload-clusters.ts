import { setTimeout as delay } from "node:timers/promises";
import { SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { labelsOf, nodeStatus } from "./nodes.ts";
import { row, seconds } from "./report.ts";

// The objects in a management cluster that describe its workload clusters.

/** The namespace of Clusters, Machines and their health checks. */
export const NAMESPACE = "default";
/** How long a node may be Unknown. */
export const CONDITION_SECONDS = 1;
/** How long the first evaluation may take, which marks every Machine as healthy. */
const START_MS_MAX = 600_000;

const kind = (kind: string, plural: string): ResourceType => ({
  group: "cluster.x-k8s.io",
  version: "v1beta2",
  kind,
  plural,
  namespaced: true,
});
const CLUSTERS = kind("Cluster", "clusters");
export const MACHINES = kind("Machine", "machines");
const HEALTH_CHECKS = kind("MachineHealthCheck", "machinehealthchecks");

export const clusterName = (cluster: number): string => `c${cluster}`;
export const nodeName = (cluster: number, node: number): string => `c${cluster}-n${node}`;

/** A Node that is Ready until a test changes it. */
export function staticNode(name: string): Record<string, unknown> {
  return {
    metadata: { name, labels: labelsOf(name) },
    spec: { podCIDR: "10.0.0.0/24" },
    status: nodeStatus("True"),
  };
}

/** A node of a workload cluster; its Machine has the same name. */
export interface ClusterNode {
  name: string;
  providerID?: string;
}

/**
 * Creates a Cluster with this kubeconfig, a health check, and a Machine for each node.
 *
 * @param templateRef template for the remediation of unhealthy Machines; by default they are only marked.
 */
export function addCluster(
  management: ApiServer,
  index: number,
  kubeconfig: string,
  nodes: readonly ClusterNode[],
  templateRef?: { apiVersion: string; kind: string; name: string },
): void {
  const name = clusterName(index);
  const labels = { "cluster.x-k8s.io/cluster-name": name };
  const condition = (type: string): object => ({
    type,
    status: "True",
    reason: type,
    message: "",
    lastTransitionTime: toTime(systemClock.nowMs()),
  });
  const create = (type: ResourceType, name: string, body: { spec?: object; data?: object }, status?: object): void => {
    const collection = management.collection(type);
    const metadata = { namespace: NAMESPACE, name, labels };
    collection.create({ apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...body });
    if (status !== undefined) collection.mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
  };
  create(SECRETS, `${name}-kubeconfig`, { data: { value: Buffer.from(kubeconfig).toString("base64") } });
  create(
    CLUSTERS,
    name,
    { spec: {} },
    { conditions: ["InfrastructureReady", "ControlPlaneInitialized"].map(condition) },
  );
  const unhealthyNodeConditions = [{ type: "Ready", status: "Unknown", timeoutSeconds: CONDITION_SECONDS }];
  create(HEALTH_CHECKS, name, {
    spec: {
      clusterName: name,
      selector: { matchLabels: labels },
      checks: { unhealthyNodeConditions },
      ...(templateRef !== undefined && { remediation: { templateRef } }),
    },
  });
  for (const { name: node, ...spec } of nodes) {
    const infrastructureRef = { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "Metal3Machine", name: node };
    create(
      MACHINES,
      node,
      { spec: { clusterName: name, bootstrap: {}, infrastructureRef, ...spec } },
      {
        nodeRef: { name: node },
        phase: "Running",
        conditions: ["InfrastructureReady", "NodeHealthy", "Ready"].map(condition),
      },
    );
  }
}

interface Counted extends KubeObject {
  status?: { currentHealthy?: number };
}

/**
 * Resolves when the health check of each of the first `clusterCount` clusters has counted its nodes, and prints how
 * long that took.
 */
export async function allCounted(
  management: ApiServer,
  clusterCount: number,
  nodesOf: (index: number) => number,
): Promise<void> {
  const checks = management.collection<Counted>(HEALTH_CHECKS);
  const isCounted = (index: number): boolean =>
    checks.get({ namespace: NAMESPACE, name: clusterName(index) })?.status?.currentHealthy === nodesOf(index);
  const startedMs = systemClock.monotonicMs();
  for (let index = 0; index < clusterCount;) {
    if (isCounted(index)) index++;
    else if (systemClock.monotonicMs() - startedMs > START_MS_MAX) throw new Error(`c${index} has not been counted`);
    else await delay(500);
  }
  row(`${clusterCount} clusters: until all are counted`, `${seconds(systemClock.monotonicMs() - startedMs)} s`);
}
