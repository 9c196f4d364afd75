import { keyOf } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { ApiServer } from "../api-server.ts";
import { NAMESPACES } from "./cluster-types.ts";
import type { Namespace } from "./cluster-types.ts";
import { KeyQueue } from "./key-queue.ts";

const RECHECK_MS = 1_000;

/** namespace-controller: deletes the contents of a namespace that is being deleted, then removes the namespace. */
export function startNamespaces(
  { server, clock }: { server: ApiServer; clock: Clock },
  { lagMs }: { lagMs: number },
): () => void {
  const namespaces = server.collection<Namespace>(NAMESPACES);

  const empty = (name: string): number | undefined => {
    const namespace = namespaces.get({ name });
    if (namespace?.metadata.deletionTimestamp === undefined) return undefined;
    let isEmpty = true;
    for (const type of server.kinds().filter(({ namespaced }) => namespaced)) {
      const collection = server.collection(type);
      for (const object of collection.values()) {
        if (object.metadata.namespace !== name) continue;
        if (object.metadata.deletionTimestamp === undefined) collection.delete(keyOf(object));
        isEmpty = isEmpty && collection.get(keyOf(object)) === undefined;
      }
    }
    if (!isEmpty) return RECHECK_MS;
    namespaces.mergePatch({ name }, { spec: { finalizers: null } }, "finalize");
    return undefined;
  };

  const queue = new KeyQueue(clock, empty);
  const unsubscribe = namespaces.subscribe(({ object }) => queue.enqueue(object.metadata.name, lagMs));
  return () => {
    unsubscribe();
    queue.stop();
  };
}
