import { PODS } from "../../../src/api/kubernetes/core-types.ts";
import type { Pod } from "../../../src/api/kubernetes/core.ts";
import { keyOf, keyText, parseKey } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { ApiServer } from "../api-server.ts";
import { CLAIMS, isTerminated, STATEFUL_SETS } from "./cluster-types.ts";
import type { PersistentVolumeClaim, StatefulSet } from "./cluster-types.ts";
import { KeyQueue } from "./key-queue.ts";

/**
 * statefulset-controller: keeps the pods `<set>-0`, `<set>-1` and so on running, with a claim for each
 * volumeClaimTemplate. It creates a pod only if no Pod object of that name exists, not even a terminating one, as
 * Kubernetes guarantees. Rolling updates are left out.
 */
export function startStatefulSets(
  { server, clock }: { server: ApiServer; clock: Clock },
  { lagMs }: { lagMs: number },
): () => void {
  const sets = server.collection<StatefulSet>(STATEFUL_SETS);
  const pods = server.collection<Pod>(PODS);
  const claims = server.collection<PersistentVolumeClaim>(CLAIMS);

  const reconcile = (key: string): undefined => {
    const set = sets.get(parseKey(key));
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) return;
    const { namespace } = set.metadata;
    for (let ordinal = 0; ordinal < set.spec.replicas; ordinal += 1) {
      const name = `${set.metadata.name}-${ordinal}`;
      const pod = pods.get({ namespace, name });
      if (pod === undefined) {
        for (const claim of claimsOf(set, name)) {
          if (claims.get({ namespace, name: claim.metadata.name }) === undefined) claims.create(claim);
        }
        pods.create(podOf(set, name));
      } else if (isTerminated(pod) && pod.metadata.deletionTimestamp === undefined) {
        pods.delete(keyOf(pod), { uid: pod.metadata.uid });
      }
      const isUp = pod?.status?.phase === "Running" && pod.metadata.deletionTimestamp === undefined;
      if (!isUp && set.spec.podManagementPolicy !== "Parallel") return;
    }
  };

  const queue = new KeyQueue(clock, reconcile);
  const unsubscribers = [
    sets.subscribe(({ object }) => queue.enqueue(keyText(keyOf(object)), lagMs)),
    pods.subscribe(({ object }) => {
      const owner = object.metadata.ownerReferences?.find(({ kind, controller }) => {
        return kind === "StatefulSet" && controller === true;
      });
      if (owner !== undefined) queue.enqueue(`${object.metadata.namespace}/${owner.name}`, lagMs);
    }),
  ];
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
    queue.stop();
  };
}

function claimsOf(set: StatefulSet, podName: string): (Record<string, unknown> & { metadata: { name: string } })[] {
  const { namespace } = set.metadata;
  return (set.spec.volumeClaimTemplates ?? []).map(({ metadata, spec }) => ({
    metadata: { name: `${metadata.name}-${podName}`, namespace },
    spec,
  }));
}

function podOf(set: StatefulSet, name: string): Record<string, unknown> {
  const { metadata = {}, spec } = set.spec.template;
  const claimed = (set.spec.volumeClaimTemplates ?? []).map((claim) => ({
    name: claim.metadata.name,
    persistentVolumeClaim: { claimName: `${claim.metadata.name}-${name}` },
  }));
  return {
    metadata: {
      ...metadata,
      name,
      namespace: set.metadata.namespace,
      labels: { ...metadata.labels, "statefulset.kubernetes.io/pod-name": name },
      ownerReferences: [
        {
          apiVersion: set.apiVersion,
          kind: set.kind,
          name: set.metadata.name,
          uid: set.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: { ...spec, volumes: [...(spec.volumes ?? []), ...claimed] },
  };
}
