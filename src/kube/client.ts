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
 * What a write expects the object to be, so that it never changes a successor with the same name or overwrites a newer
 * change. `uid` is always checked, and `resourceVersion` if it is given.
 */
export interface Guard {
  uid: string;
  resourceVersion?: string;
}

/** Options of a call that may be one of hundreds. */
export interface BulkOptions {
  /** Sends the call on connections of the lane `bulk`, so that no other call waits behind it. */
  bulk?: boolean;
}

export interface ListOptions extends BulkOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** The number of objects in a page. The default is 100 (`paged-list.ts`), and less for an untrusted API server. */
  pageSize?: number;
  /** The largest number of pages to read. To learn the version of a collection, one page with one object is enough. */
  pagesMax?: number;
  /**
   * Returns the part of an object to keep. The rest is dropped page by page, so that a long list needs little memory.
   */
  trim?: (raw: KubeObject) => KubeObject;
}

export interface ObjectList<T> {
  items: T[];
  /** The version that was listed. Everything that was stored before the request is included in it. */
  resourceVersion: string;
}

export interface WriteOptions extends BulkOptions {
  /** For example, `status`. */
  subresource?: string;
  /** The server validates the request and answers, and stores nothing. */
  dryRun?: boolean;
  /** The server refuses an object with a field that its schema does not have. By default it drops the field. */
  strict?: boolean;
}

export interface DeleteOptions extends BulkOptions {
  guard: Guard;
  gracePeriodSeconds?: number;
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
  dryRun?: boolean;
}

/**
 * Calls to one API server. Every call has its own deadline, and every failure is a KubeError. The client retries reads
 * on Network, Timeout, TooManyRequests and Unavailable, within the deadline. It never retries a write: if the answer is
 * lost, the caller reads the object and decides again. Objects are returned as the server sent them, unknown fields
 * included.
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
   * Sends `test` operations for the guard, then `operations`. Throws Conflict if the guard or a `test` fails or if a
   * path does not exist: read the object and decide again.
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
   * Sends an RFC 7386 merge patch with the guard in its metadata, for whole sections such as `status`. A field that is
   * left out stays; to remove a field, set it to `null`.
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
   * Deletes the object that the guard names. Throws NotFound if it does not exist, and Conflict if its UID or version
   * differs.
   */
  delete(type: ResourceType, key: ObjectKey, options: DeleteOptions, signal: AbortSignal): Promise<void>;
  /**
   * Finds out by API discovery how the server serves a kind.
   *
   * @param apiVersion `group/version`, or a group alone for the version that the server prefers.
   * @returns undefined if the server does not serve it. This answer is not cached.
   */
  discover(apiVersion: string, kind: string, signal: AbortSignal): Promise<ResourceType | undefined>;
}
