import { NODES, PODS } from "../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import { keyOf, keyText, parseKey } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { ApiServer } from "../api-server.ts";
import { CLAIMS, conditionStatus, tolerationOf } from "./cluster-types.ts";
import type { ClusterPod, PersistentVolumeClaim } from "./cluster-types.ts";
import { KeyQueue } from "./key-queue.ts";
import type { PodIndex } from "./pod-index.ts";

/**
 * A minimal kube-scheduler: when the claims of a pending pod are bound, binds the pod to a Ready node whose taints it
 * tolerates and whose labels match its nodeSelector. Of several such nodes it takes the one with the fewest pods.
 * Resources and affinity are left out.
 */
export function startScheduler(
  { server, clock, podIndex }: { server: ApiServer; clock: Clock; podIndex: PodIndex },
  { lagMs }: { lagMs: number },
): () => void {
  const nodes = server.collection<Node>(NODES);
  const pods = server.collection<ClusterPod>(PODS);
  const claims = server.collection<PersistentVolumeClaim>(CLAIMS);
  const pending = new Set<string>();

  const hasVolumes = (pod: ClusterPod): boolean => {
    const { namespace } = pod.metadata;
    const names = (pod.spec.volumes ?? []).flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? []);
    return names.every((name) => claims.get({ namespace, name })?.status?.phase === "Bound");
  };

  const schedule = (key: string): undefined => {
    const pod = pods.get(parseKey(key));
    if (pod === undefined || !pending.has(key) || !hasVolumes(pod)) return;
    const fitting = [...nodes.values()].filter((node) => fits(pod, node));
    const load = (node: Node): number => podIndex.countOn(node.metadata.name);
    const [best] = fitting.sort((a, b) => load(a) - load(b) || (a.metadata.name < b.metadata.name ? -1 : 1));
    if (best !== undefined) pods.bind(keyOf(pod), best.metadata.name);
  };

  const queue = new KeyQueue(clock, schedule);
  const retryAll = (): void => {
    for (const key of pending) queue.enqueue(key, lagMs);
  };
  const unsubscribers = [
    pods.subscribe(({ type, object }) => {
      const key = keyText(keyOf(object));
      const isPending = (object.spec.nodeName ?? "") === "" && object.metadata.deletionTimestamp === undefined;
      if (type === "DELETED" || !isPending) {
        pending.delete(key);
        return;
      }
      pending.add(key);
      queue.enqueue(key, lagMs);
    }),
    nodes.subscribe(retryAll),
    claims.subscribe(retryAll),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    queue.stop();
  };
}

function fits(pod: ClusterPod, node: Node): boolean {
  const { nodeSelector = {}, tolerations = [] } = pod.spec;
  const labels = node.metadata.labels ?? {};
  return (
    conditionStatus(node, "Ready") === "True" &&
    node.spec.unschedulable !== true &&
    Object.entries(nodeSelector).every(([key, value]) => labels[key] === value) &&
    (node.spec.taints ?? []).every((taint) => {
      return taint.effect === "PreferNoSchedule" || tolerationOf(taint, tolerations) !== undefined;
    })
  );
}
