import type { KubeObject, ObjectMeta, ResourceType } from "../../../src/kube/resource.ts";
import type { Node, Pod, Taint, Toleration } from "../../../src/api/kubernetes/core.ts";

// Kinds that the simulated controllers need and ironfence does not.

export interface ClusterPod extends Pod {
  spec: Pod["spec"] & { nodeSelector?: Record<string, string> };
}

export interface ClusterNode extends Node {
  status: Node["status"] & { volumesInUse?: string[] };
}

export interface PersistentVolume extends KubeObject {
  spec: { csi?: { driver: string; volumeHandle: string }; claimRef?: { namespace: string; name: string } };
  status?: { phase?: string };
}

export interface PersistentVolumeClaim extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  spec: { volumeName?: string };
  status?: { phase?: string };
}

export interface StatefulSet extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  spec: {
    replicas: number;
    podManagementPolicy?: string;
    template: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
      spec: Record<string, unknown> & { volumes?: unknown[] };
    };
    volumeClaimTemplates?: { metadata: { name: string }; spec: Record<string, unknown> }[];
  };
}

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
}

export const NAMESPACES: ResourceType = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
};
export const CLAIMS: ResourceType = {
  group: "",
  version: "v1",
  kind: "PersistentVolumeClaim",
  plural: "persistentvolumeclaims",
  namespaced: true,
};
export const STATEFUL_SETS: ResourceType = {
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  plural: "statefulsets",
  namespaced: true,
};

/** The status of a condition of a node; undefined if the node has no condition of that type. */
export function conditionStatus(node: Node, type: string): string | undefined {
  return node.status.conditions?.find((condition) => condition.type === type)?.status;
}

/** The toleration of the taint, if the pod has one. */
export function tolerationOf(taint: Taint, tolerations: readonly Toleration[]): Toleration | undefined {
  return tolerations.find(({ key = "", operator = "Equal", value = "", effect = "" }) => {
    const fitsEffect = effect === "" || effect === taint.effect;
    const fitsKey = key === taint.key || (key === "" && operator === "Exists");
    return fitsEffect && fitsKey && (operator === "Exists" || value === (taint.value ?? ""));
  });
}

/** Whether a pod has run to its end. */
export function isTerminated(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

/** Whether the node has the out-of-service taint (KEP-2268). */
export function isOutOfService(node: Node): boolean {
  return node.spec.taints?.some(({ key }) => key === "node.kubernetes.io/out-of-service") === true;
}
