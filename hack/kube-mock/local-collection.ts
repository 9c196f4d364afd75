import type { ObjectKey } from "../../src/kube/client.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { Catalog } from "./catalog.ts";
import { objectOf, textOf } from "./json.ts";
import { storeKey } from "./registry.ts";
import type { Registry, Target } from "./registry.ts";
import type { ServedResource } from "./resource.ts";
import type { Collection, Store, Stored } from "./store.ts";

/** One change in the store. */
export interface LocalChange<T extends KubeObject> {
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: T;
  /** Absent for `ADDED`. */
  previous?: T;
}

/**
 * One collection of the store, for direct access in the same process without HTTP. It is for simulated controllers and
 * test setup: its calls are not counted and no fault affects them. Writes are checked like those of a client. Returned
 * objects are shared with the store, so treat them as frozen. Every failure is an ApiError.
 */
export interface LocalCollection<T extends KubeObject> {
  get(key: ObjectKey): T | undefined;
  values(): Iterable<T>;
  /** Calls `listener` with `ADDED` for every existing object, then with each change, synchronously within the write. */
  subscribe(listener: (change: LocalChange<T>) => void): () => void;
  /** A namespaced object must have `metadata.namespace`. */
  create(object: Record<string, unknown>): T;
  /** RFC 7386 merge patch. `resourceVersion` or `uid` in its metadata are preconditions. */
  mergePatch(key: ObjectKey, patch: Record<string, unknown>, subresource?: "status" | "finalize"): T;
  /** Binds a pod to a node. */
  bind(key: ObjectKey, nodeName: string): void;
  delete(key: ObjectKey, options?: { gracePeriodSeconds?: number; uid?: string; propagationPolicy?: string }): void;
}

interface Deps {
  catalog: Catalog;
  registry: Registry;
  store: Store;
  clock: Pick<Clock, "nowMs">;
}

/** Opens the collection of `type`, even if that type is not served yet. */
export function openCollection<T extends KubeObject>(deps: Deps, type: ResourceType): LocalCollection<T> {
  const { catalog, registry, store, clock } = deps;
  const served = (): ServedResource => catalog.get(type);
  // The caller declares the type of the objects. The store has them as JSON.
  const show = (stored: Stored): T => stored.as(served()) as unknown as T;
  const collection = (): Collection => store.collection(served().storage);
  return {
    get: (key) => {
      const stored = collection().get(storeKey(served(), targetOf(key)));
      return stored === undefined ? undefined : show(stored);
    },
    values: () => [...collection().values()].map(show),
    subscribe: (listener) => {
      for (const stored of collection().values()) listener({ type: "ADDED", object: show(stored) });
      return collection().subscribe(({ type, current, previous }) => {
        listener({ type, object: show(current), ...(previous !== undefined && { previous: show(previous) }) });
      });
    },
    create: (object) => {
      const resource = served();
      const namespace = resource.namespaced ? textOf(objectOf(object["metadata"])["namespace"]) : "";
      const sent = { apiVersion: resource.apiVersion, kind: resource.kind, ...object };
      return show(registry.create(resource, namespace, sent, { subresource: "", dryRun: false, strict: true }).stored);
    },
    mergePatch: (key, patch, subresource) => {
      const options = { subresource: subresource ?? ("" as const), dryRun: false, strict: true };
      const text = JSON.stringify(patch);
      return show(registry.patch(served(), targetOf(key), "application/merge-patch+json", text, options).stored);
    },
    bind: (key, nodeName) => {
      registry.bind(served(), targetOf(key), nodeName, toTime(clock.nowMs()));
    },
    delete: (key, { gracePeriodSeconds, uid, propagationPolicy } = {}) => {
      registry.delete(served(), targetOf(key), {
        preconditions: { ...(uid !== undefined && { uid }) },
        gracePeriodSeconds,
        propagationPolicy,
        dryRun: false,
      });
    },
  };
}

function targetOf({ namespace = "", name }: ObjectKey): Target {
  return { namespace, name };
}
