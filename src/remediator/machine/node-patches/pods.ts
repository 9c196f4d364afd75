import type { NodeCondition, Pod, Toleration, VolumeAttachment } from "../../../api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../../api/kubernetes/taints.ts";

const MIRROR = "kubernetes.io/config.mirror";

/** Whether a pod must leave a node that has the out-of-service taint. Mirror pods and pods that tolerate it stay. */
export function mustLeave(pod: Pod): boolean {
  if (pod.metadata.annotations?.[MIRROR] !== undefined) return false;
  return !(pod.spec.tolerations ?? []).some(toleratesOutOfService);
}

/**
 * The rule of Kubernetes (`Toleration.ToleratesTaint`): an empty key or effect matches any, and an empty operator means
 * `Equal`.
 */
function toleratesOutOfService(toleration: Toleration): boolean {
  const { key = "", operator = "Equal", value = "", effect = "" } = toleration;
  if (effect !== "" && effect !== OUT_OF_SERVICE.effect) return false;
  if (key !== "" && key !== OUT_OF_SERVICE.key) return false;
  if (operator === "Exists") return true;
  return operator === "Equal" && key !== "" && value === OUT_OF_SERVICE.value;
}

/** Whether a pod has run to its end. Then its status must not be changed. */
export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

/** `namespace/name` of the volume claims that pods use, including those of generic ephemeral volumes. */
export function volumeClaimsOf(pods: readonly Pod[]): ReadonlySet<string> {
  const claims = new Set<string>();
  for (const { metadata, spec } of pods) {
    for (const volume of spec.volumes ?? []) {
      const claimName = volume.persistentVolumeClaim?.claimName;
      if (claimName !== undefined) claims.add(`${metadata.namespace}/${claimName}`);
      else if (volume.ephemeral !== undefined) claims.add(`${metadata.namespace}/${metadata.name}-${volume.name}`);
    }
  }
  return claims;
}

/** The volume attachments of one node. */
export function attachmentsOf(nodeName: string, attachments: readonly VolumeAttachment[]): VolumeAttachment[] {
  return attachments.filter((attachment) => attachment.spec.nodeName === nodeName);
}

/**
 * The status that the pod garbage collector of Kubernetes gives to pods of a node that is out of service, so that Jobs
 * replace them.
 */
export function failedStatus(pod: Pod, nowTime: string): { phase: "Failed"; conditions: NodeCondition[] } {
  const disrupted: NodeCondition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "NodeFenced",
    message: "ironfence: the node's host is powered off",
    lastTransitionTime: nowTime,
  };
  const others = (pod.status?.conditions ?? []).filter((condition) => condition.type !== disrupted.type);
  return { phase: "Failed", conditions: [...others, disrupted] };
}
