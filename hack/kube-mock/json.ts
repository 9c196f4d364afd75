// Functions for objects in JSON form. Stored objects are shared between the store, its history and its watchers, so no
// function here changes a value in place.

export type JsonObject = Record<string, unknown>;

/** An API object of any kind. */
export interface ApiObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
}

/** `metadata` with the fields that the server itself reads or writes. */
export interface Metadata extends JsonObject {
  name: string;
  namespace?: string;
  uid: string;
  /** Absent until it is stored. */
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

export interface OwnerReference extends JsonObject {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  blockOwnerDeletion?: boolean;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value` if it is an object, else an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** `value` if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** `value` if it is a string, else the empty string, which is Go's zero value. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** `object` without the fields of `names`. */
export function omit(object: JsonObject, ...names: string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** Whether both are the same JSON. The order of fields does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a).filter((name) => a[name] !== undefined);
  const others = Object.keys(b).filter((name) => b[name] !== undefined);
  return names.length === others.length && names.every((name) => Object.hasOwn(b, name) && jsonEqual(a[name], b[name]));
}

/**
 * `next`, with parts that equal those of `previous` replaced by the same objects, so that later comparisons are fast.
 */
export function shareWith(next: unknown, previous: unknown): unknown {
  if (next === previous) return previous;
  if (Array.isArray(next)) {
    if (!Array.isArray(previous)) return next;
    const shared = next.map((item, index) => shareWith(item, previous[index]));
    const isSame = shared.length === previous.length && shared.every((item, index) => item === previous[index]);
    return isSame ? previous : shared;
  }
  if (!isObject(next) || !isObject(previous)) return next;
  const shared: JsonObject = {};
  let changes = Object.keys(previous).length;
  for (const name of Object.keys(next)) {
    const value = shareWith(next[name], previous[name]);
    shared[name] = value;
    changes += Object.hasOwn(previous, name) && value === previous[name] ? -1 : 1;
  }
  return changes === 0 ? previous : shared;
}
