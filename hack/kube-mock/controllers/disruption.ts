import type { NodeCondition, Pod } from "../../../src/api/kubernetes/core.ts";
import { keyOf } from "../../../src/kube/watched.ts";
import type { LocalCollection } from "../local-collection.ts";

/** Marks a pod as the victim of a disruption, as Kubernetes' own controllers do before they delete one. */
export function markDisrupted(
  pods: LocalCollection<Pod>,
  pod: Pod,
  change: { phase?: "Failed"; reason: string; message: string; now: string },
): void {
  const { reason, message, now, phase } = change;
  const kept = (pod.status?.conditions ?? []).filter(({ type }) => type !== "DisruptionTarget");
  const condition: NodeCondition = {
    type: "DisruptionTarget",
    status: "True",
    reason,
    message,
    lastTransitionTime: now,
  };
  const status = { conditions: [...kept, condition], ...(phase !== undefined && { phase }) };
  pods.mergePatch(keyOf(pod), { metadata: { uid: pod.metadata.uid }, status }, "status");
}
