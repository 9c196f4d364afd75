import type { KubeObject, ResourceType } from "./resource.ts";

/** Names one object of a known kind. */
export interface ObjectKey {
  /** Absent for cluster-scoped kinds. */
  namespace?: string;
  name: string;
}

/** One operation of an RFC 6902 patch. */
export type JsonPatchOperation =
  | { op: "test" | "add" | "replace"; path: string; value: unknown }
  | { op: "remove"; path: string };

/**
 * What a write expects the object to be, so that it never lands on a successor of the same name or on a newer
 * change. `uid` is always checked; `resourceVersion` too if it is given.
 */
export interface Guard {
  uid: string;
  resourceVersion?: string;
}

export interface ListOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Objects a page; 500 by default. */
  pageSize?: number;
  /** Reads no more pages than that: for the version of a whole collection, one object is enough. */
  pagesMax?: number;
  /** What is kept of each object: the rest is dropped page by page, so that a long list needs little memory. */
  trim?: (raw: KubeObject) => KubeObject;
}

export interface ObjectList<T> {
  items: T[];
  /** Nothing that was stored before the list was asked for is later than that. */
  resourceVersion: string;
}

export interface WriteOptions {
  /** For example, `status`. */
  subresource?: string;
  /** The server checks and answers, and stores nothing. */
  dryRun?: boolean;
}

export interface DeleteOptions {
  guard: Guard;
  gracePeriodSeconds?: number;
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  dryRun?: boolean;
}

/**
 * Calls on one API server. Every call has a deadline of its own, and every failure is a KubeError. Reads are tried
 * again by themselves on Network, Timeout, TooManyRequests and Unavailable, within the deadline; writes never are:
 * after a lost write the caller reads and decides. Objects come as the server sent them, unknown fields and all.
 */
export interface KubeClient {
  get<T extends KubeObject>(type: ResourceType, key: ObjectKey, signal: AbortSignal): Promise<T>;
  /** Lists live from storage, page by page. */
  list<T extends KubeObject>(type: ResourceType, options: ListOptions, signal: AbortSignal): Promise<ObjectList<T>>;
  create<T extends KubeObject>(
    type: ResourceType,
    object: Omit<T, "metadata"> & { metadata: Partial<T["metadata"]> },
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T>;
  /**
   * Applies `operations` behind `test` operations for the guard; a guard or `test` that does not hold, or a path that
   * is not there, throws Conflict: read and decide again.
   */
  patch<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Guard,
    operations: readonly JsonPatchOperation[],
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T>;
  /**
   * RFC 7386 merge patch with the guard in its metadata, for whole sections such as `status`. A `null` removes a field,
   * so the content must be complete for what it means to remove.
   */
  mergePatch<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Required<Guard>,
    content: Record<string, unknown>,
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T>;
  /**
   * Deletes the object that the guard names. NotFound is thrown, not swallowed; another UID or version throws Conflict.
   */
  delete(type: ResourceType, key: ObjectKey, options: DeleteOptions, signal: AbortSignal): Promise<void>;
  /**
   * Finds by API discovery how a kind is served.
   *
   * @param apiVersion `group/version`; with a bare group the server's preferred version is taken.
   * @returns undefined if the server does not serve it (the answer is not cached then).
   */
  discover(apiVersion: string, kind: string, signal: AbortSignal): Promise<ResourceType | undefined>;
}
