import { NODES, PODS } from "../../../src/api/kubernetes/core-types.ts";
import type { Node, Pod, Taint, Toleration } from "../../../src/api/kubernetes/core.ts";
import { keyOf, keyText, parseKey } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { toTime } from "../../../src/runtime/time.ts";
import type { ApiServer } from "../api-server.ts";
import { jsonEqual } from "../json.ts";
import { tolerationOf } from "./cluster-types.ts";
import { markDisrupted } from "./disruption.ts";
import { KeyQueue } from "./key-queue.ts";
import type { PodIndex } from "./pod-index.ts";

/**
 * taint-eviction-controller: deletes the pods of a node that do not tolerate its NoExecute taints, at once or when the
 * shortest of their tolerationSeconds is over. On a dead node no kubelet confirms the deletion, so the pod stays
 * Terminating.
 */
export function startTaintEviction(
  { server, clock, podIndex }: { server: ApiServer; clock: Clock; podIndex: PodIndex },
  { lagMs }: { lagMs: number },
): () => void {
  const nodes = server.collection<Node>(NODES);
  const pods = server.collection<Pod>(PODS);
  /** The time at which each pod (by UID) was first seen on a node with NoExecute taints. */
  const sinceMs = new Map<string, number>();

  const evict = (key: string): number | undefined => {
    const pod = pods.get(parseKey(key));
    if (pod?.spec.nodeName === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
    const { uid } = pod.metadata;
    const taints = noExecuteTaints(nodes.get({ name: pod.spec.nodeName }));
    const staysMs = toleratedMs(taints, pod.spec.tolerations ?? []);
    if (staysMs === Infinity) {
      sinceMs.delete(uid);
      return undefined;
    }
    const seenMs = sinceMs.get(uid) ?? clock.monotonicMs();
    const restMs = seenMs + staysMs - clock.monotonicMs();
    if (restMs > 0) {
      sinceMs.set(uid, seenMs);
      return restMs;
    }
    sinceMs.delete(uid);
    const message = "Taint manager: deleting due to NoExecute taint";
    markDisrupted(pods, pod, { reason: "DeletionByTaintManager", message, now: toTime(clock.nowMs()) });
    pods.delete(keyOf(pod), { uid });
    return undefined;
  };

  const queue = new KeyQueue(clock, evict);
  const unsubscribers = [
    nodes.subscribe(({ object, previous }) => {
      if (jsonEqual(noExecuteTaints(object), noExecuteTaints(previous))) return;
      for (const key of podIndex.keysOn(object.metadata.name)) queue.enqueue(key, lagMs);
    }),
    pods.subscribe(({ type, object, previous }) => {
      if (type === "DELETED") sinceMs.delete(object.metadata.uid);
      else if (object.spec.nodeName !== previous?.spec.nodeName) queue.enqueue(keyText(keyOf(object)), lagMs);
    }),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    queue.stop();
  };
}

function noExecuteTaints(node: Node | undefined): Taint[] {
  return (node?.spec.taints ?? []).filter(({ effect }) => effect === "NoExecute");
}

/** How long a pod may stay: 0 if it does not tolerate one of the taints, Infinity if nothing limits it. */
function toleratedMs(taints: readonly Taint[], tolerations: readonly Toleration[]): number {
  const limitsMs = taints.map((taint) => {
    const toleration = tolerationOf(taint, tolerations);
    if (toleration === undefined) return 0;
    return toleration.tolerationSeconds === undefined ? Infinity : Math.max(0, toleration.tolerationSeconds) * 1_000;
  });
  return Math.min(Infinity, ...limitsMs);
}
