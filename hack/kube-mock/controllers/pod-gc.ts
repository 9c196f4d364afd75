import { NODES, PODS } from "../../../src/api/kubernetes/core-types.ts";
import type { Node, Pod } from "../../../src/api/kubernetes/core.ts";
import { keyOf } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { toTime } from "../../../src/runtime/time.ts";
import type { ApiServer } from "../api-server.ts";
import { conditionStatus, isOutOfService, isTerminated } from "./cluster-types.ts";
import { markDisrupted } from "./disruption.ts";
import { every } from "./key-queue.ts";

/**
 * pod-garbage-collector: every `periodMs` it force-deletes terminating pods of nodes that are not Ready and have the
 * out-of-service taint, pods of nodes that were deleted at least `quarantineMs` ago, and terminating pods without a
 * node.
 */
export function startPodGc(
  { server, clock }: { server: ApiServer; clock: Clock },
  { periodMs, quarantineMs }: { periodMs: number; quarantineMs: number },
): () => void {
  const nodes = server.collection<Node>(NODES);
  const pods = server.collection<Pod>(PODS);
  /** The time at which the absence of each node was first noticed. */
  const missingSinceMs = new Map<string, number>();

  const remove = (pod: Pod, reason: string | undefined): void => {
    if (reason !== undefined && !isTerminated(pod)) {
      const message = "PodGC: node no longer exists or is out of service";
      markDisrupted(pods, pod, { phase: "Failed", reason, message, now: toTime(clock.nowMs()) });
    }
    pods.delete(keyOf(pod), { gracePeriodSeconds: 0, uid: pod.metadata.uid });
  };

  return every(clock, periodMs, () => {
    const missing = new Set<string>();
    for (const pod of pods.values()) {
      const { nodeName } = pod.spec;
      const isTerminating = pod.metadata.deletionTimestamp !== undefined;
      if (nodeName === undefined || nodeName === "") {
        if (isTerminating) remove(pod, undefined);
        continue;
      }
      const node = nodes.get({ name: nodeName });
      if (node === undefined) {
        missing.add(nodeName);
        const sinceMs = missingSinceMs.get(nodeName) ?? clock.monotonicMs();
        missingSinceMs.set(nodeName, sinceMs);
        if (clock.monotonicMs() - sinceMs >= quarantineMs) remove(pod, "DeletionByPodGC");
      } else if (isTerminating && conditionStatus(node, "Ready") !== "True" && isOutOfService(node)) {
        remove(pod, "DeletionByPodGC");
      }
    }
    for (const name of missingSinceMs.keys()) {
      if (!missing.has(name)) missingSinceMs.delete(name);
    }
  });
}
