import type { ObjectKey } from "./client.ts";
import type { KubeErrorCode } from "./errors.ts";
import type { KubeObject } from "./resource.ts";

/**
 * One change of a watched collection. A deleted and re-created object is a `deleted` and an `added`, distinguished by
 * UID.
 */
export type Change<T> =
  | { type: "added"; object: T }
  | { type: "updated"; object: T; previous: T }
  | { type: "deleted"; object: T };

/** The local view of one watched collection: eventually what the server holds, and never a guess. */
export interface Watched<T extends KubeObject> {
  /** The object as last seen; undefined if there is none. Treat it as frozen. */
  get(key: ObjectKey): T | undefined;
  values(): IterableIterator<T>;
  readonly size: number;
  /** Whether the first list has been read in full. Before that the view is empty and means nothing. */
  readonly synced: boolean;
  /**
   * Monotonic time of the last word from the server (list, event or bookmark). An old one means a view that may be
   * stale.
   */
  readonly lastContactMs: number;
  /**
   * The version of the collection up to which the view shows everything; undefined before the first list, and of a view
   * that is not watched.
   */
  readonly version?: string | undefined;
  /** Why the server cannot be listed or watched at present, for messages and statuses; undefined while all is well. */
  readonly problem: string | undefined;
  /** The code of that, if there was an answer or an error that has one. */
  readonly problemCode?: KubeErrorCode | undefined;
  /**
   * How often the server has gone back to an earlier state, as after etcd was restored: what was remembered of this
   * collection is of another history then, and versions of the two do not compare. Undefined counts as never.
   */
  readonly rewinds?: number;
  /** Calls `listener` for every change from now on, and with `added` for every object that is there already. */
  subscribe(listener: (change: Change<T>) => void): () => void;
  /** Resolves once `synced`. */
  whenSynced(signal: AbortSignal): Promise<void>;
}

/** `namespace/name`, or `name` alone: the key of work queues and maps. */
export function keyText(key: ObjectKey): string {
  return key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`;
}

/** Reads what `keyText` wrote. */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf("/");
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** The key of an object. */
export function keyOf(object: KubeObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}

/** An object in messages: `namespace/name`, or `name` alone. */
export function nameOf(object: KubeObject): string {
  return keyText(keyOf(object));
}
