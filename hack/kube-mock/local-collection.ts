import type { ObjectKey } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/resource.ts";

/** One change in the store. */
export interface LocalChange<T extends KubeObject> {
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: T;
  /** Absent for `ADDED`. */
  previous?: T;
}

/**
 * One collection of the store, read and written in the same process without HTTP. Writes go through the same checks as a
 * client's. Objects are shared with the store: treat them as frozen. Every failure is an ApiError.
 */
export interface LocalCollection<T extends KubeObject> {
  get(key: ObjectKey): T | undefined;
  values(): Iterable<T>;
  /** Calls `listener` with `ADDED` for all that is there, then with every change at the time of its write. */
  subscribe(listener: (change: LocalChange<T>) => void): () => void;
  /** A namespaced object names its namespace itself. */
  create(object: Record<string, unknown>): T;
  /** RFC 7386 merge patch; put `resourceVersion` or `uid` into its metadata to guard it. */
  mergePatch(key: ObjectKey, patch: Record<string, unknown>, subresource?: string): T;
  delete(key: ObjectKey, options?: { gracePeriodSeconds?: number; uid?: string }): void;
}
