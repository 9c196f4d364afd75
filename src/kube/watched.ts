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

/** The local view of one watched collection. It may be late, but it shows only states that the server has reported. */
export interface Watched<T extends KubeObject> {
  /** The object as last seen; undefined if there is none. Treat it as frozen. */
  get(key: ObjectKey): T | undefined;
  values(): IterableIterator<T>;
  readonly size: number;
  /**
   * Whether the first list was read in full. Before that the view is empty, and this does not mean that no object
   * exists.
   */
  readonly synced: boolean;
  /**
   * Monotonic time at which the server last reported something (list, event or bookmark). If it is long ago, the view
   * may be stale.
   */
  readonly lastContactMs: number;
  /**
   * The version of the collection up to which the view is complete; undefined before the first list, and for a view
   * that does not watch.
   */
  readonly version?: string | undefined;
  /** Why the collection cannot be listed or watched now, for messages and statuses; undefined if it can. */
  readonly problem: string | undefined;
  /** The error code of `problem`, if it has one. */
  readonly problemCode?: KubeErrorCode | undefined;
  /**
   * How often the server has gone back to an earlier state, for example because etcd was restored from a backup.
   * Versions from before and after it cannot be compared, so a caller must forget what it remembered about this
   * collection. Undefined counts as never.
   */
  readonly rewinds?: number;
  /** Calls `listener` with `added` for every object that exists already, and then for every change. */
  subscribe(listener: (change: Change<T>) => void): () => void;
  /**
   * Resolves once the view shows at least what a list shows that is read now: an open watch may be silent without an
   * error. Undefined for a view that cannot be refreshed.
   */
  refresh?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Resolves once `synced`. */
  whenSynced(signal: AbortSignal): Promise<void>;
}

/** `namespace/name`, or `name` alone: the key of work queues and maps. */
export function keyText(key: ObjectKey): string {
  return key.namespace === undefined ? key.name : `${key.namespace}/${key.name}`;
}

/** Parses the result of `keyText`. */
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
