import type { KubeObject, OwnerReference, ResourceType } from "../../../src/kube/resource.ts";
import { keyOf } from "../../../src/kube/watched.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { ApiServer } from "../api-server.ts";
import { jsonEqual } from "../json.ts";
import { KeyQueue } from "./key-queue.ts";

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";

/**
 * garbage-collector-controller: deletes an object when all its owners are gone. It looks for an owner only in the
 * namespace of the object, so an owner in another namespace counts as gone, as in Kubernetes. It supports foreground
 * deletion and orphaning.
 */
export function startGarbageCollector(
  { server, clock }: { server: ApiServer; clock: Clock },
  { lagMs }: { lagMs: number },
): () => void {
  /** Objects that have owners or are being deleted, by UID. */
  const objects = new Map<string, KubeObject>();
  const dependentsOf = new Map<string, Set<string>>();

  const typeOf = (apiVersion: string, kind: string): ResourceType | undefined => {
    const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
    return server.kinds().find((type) => type.group === group && type.kind === kind);
  };

  const isGone = (object: KubeObject, owner: OwnerReference): boolean => {
    const type = typeOf(owner.apiVersion, owner.kind);
    if (type === undefined) return false;
    const { namespace } = object.metadata;
    if (type.namespaced && namespace === undefined) return false;
    const key = type.namespaced && namespace !== undefined ? { namespace, name: owner.name } : { name: owner.name };
    return server.collection(type).get(key)?.metadata.uid !== owner.uid;
  };

  const collect = (uid: string): undefined => {
    const object = objects.get(uid);
    if (object === undefined) return;
    const type = typeOf(object.apiVersion, object.kind);
    if (type === undefined) return;
    settleDependents(object, type);
    const owners = object.metadata.ownerReferences ?? [];
    const kept = owners.filter((owner) => !isGone(object, owner));
    if (kept.length === owners.length || object.metadata.deletionTimestamp !== undefined) return;
    if (kept.length === 0) server.collection(type).delete(keyOf(object), { uid });
    else server.collection(type).mergePatch(keyOf(object), { metadata: { uid, ownerReferences: kept } });
  };

  /** Deletes or orphans the dependents of an object as its deletion requests, then removes its finalizer. */
  const settleDependents = (object: KubeObject, type: ResourceType): void => {
    const { uid, finalizers = [], deletionTimestamp } = object.metadata;
    const asked = [FOREGROUND, ORPHAN].find((name) => finalizers.includes(name));
    if (asked === undefined || deletionTimestamp === undefined) return;
    const dependents = [...(dependentsOf.get(uid) ?? [])].flatMap((dependent) => objects.get(dependent) ?? []);
    for (const dependent of dependents) {
      const dependentType = typeOf(dependent.apiVersion, dependent.kind);
      if (dependentType === undefined) continue;
      const collection = server.collection(dependentType);
      if (asked === FOREGROUND) collection.delete(keyOf(dependent), { uid: dependent.metadata.uid });
      else {
        const ownerReferences = (dependent.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid);
        collection.mergePatch(keyOf(dependent), { metadata: { ownerReferences } });
      }
    }
    const blocking = dependents.filter((dependent) => {
      const reference = dependent.metadata.ownerReferences?.find((owner) => owner.uid === uid);
      return objects.has(dependent.metadata.uid) && reference?.blockOwnerDeletion === true;
    });
    if (asked === FOREGROUND && blocking.length > 0) return;
    const rest = finalizers.filter((name) => name !== asked);
    server.collection(type).mergePatch(keyOf(object), { metadata: { uid, finalizers: rest } });
  };

  const queue = new KeyQueue(clock, collect);
  const learn = (object: KubeObject, previous?: KubeObject): void => {
    const { uid, ownerReferences = [], deletionTimestamp } = object.metadata;
    if (ownerReferences.length === 0 && deletionTimestamp === undefined) {
      objects.delete(uid);
      return;
    }
    objects.set(uid, object);
    // Node leases have owners and change all the time, so a change of irrelevant fields must cost little.
    if (previous !== undefined && jsonEqual(relevant(previous), relevant(object))) return;
    for (const owner of ownerReferences) {
      dependentsOf.set(owner.uid, (dependentsOf.get(owner.uid) ?? new Set()).add(uid));
    }
    queue.enqueue(uid, lagMs);
  };
  const forget = (object: KubeObject): void => {
    const { uid, ownerReferences = [] } = object.metadata;
    objects.delete(uid);
    for (const owner of ownerReferences) {
      dependentsOf.get(owner.uid)?.delete(uid);
      queue.enqueue(owner.uid, lagMs);
    }
    for (const dependent of dependentsOf.get(uid) ?? []) queue.enqueue(dependent, lagMs);
    dependentsOf.delete(uid);
  };

  for (const type of server.kinds()) {
    for (const object of server.collection(type).values()) learn(object);
  }
  const unsubscribe = server.onChange(({ type, object, previous }) => {
    if (type === "DELETED") forget(object);
    else learn(object, previous);
  });
  return () => {
    unsubscribe();
    queue.stop();
  };
}

function relevant({ metadata }: KubeObject): unknown {
  const { ownerReferences = [], deletionTimestamp = "", finalizers = [] } = metadata;
  return [ownerReferences, deletionTimestamp, finalizers];
}
