import { badRequest, patchRejected, unsupportedMediaType } from "./api-error.ts";
import { isObject, jsonEqual } from "./json.ts";
import type { JsonObject } from "./json.ts";

/** The maximum number of operations in a JSON patch, as on the real server. */
const OPERATIONS_MAX = 10_000;

/**
 * Applies a JSON patch or a merge patch. Strategic merge and server-side apply are not supported.
 *
 * @param text the request's body.
 * @throws ApiError 400 for a malformed patch, 415 for another type, 422 for a patch that cannot be applied.
 */
export function applyPatch(target: JsonObject, contentType: string, text: string): JsonObject {
  switch (contentType) {
    case "application/json-patch+json":
      return applyJsonPatch(target, parsePatch(text));
    case "application/merge-patch+json": {
      const patch = parsePatch(text);
      if (!isObject(patch)) throw badRequest(`error decoding patch: a merge patch must be an object`);
      return mergeObjects(target, patch);
    }
    default:
      throw unsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json",
      );
  }
}

function parsePatch(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** RFC 7386. Values that the patch does not name are shared with `target`. */
function mergeObjects(target: JsonObject, patch: JsonObject): JsonObject {
  const merged: JsonObject = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (isObject(value)) merged[name] = mergeObjects(isObject(merged[name]) ? merged[name] : {}, value);
    else merged[name] = value;
  }
  return merged;
}

function applyJsonPatch(target: JsonObject, patch: unknown): JsonObject {
  if (!Array.isArray(patch)) throw badRequest("error decoding patch: a JSON patch must be a list");
  if (patch.length > OPERATIONS_MAX) throw badRequest(`error decoding patch: more than ${OPERATIONS_MAX} operations`);
  let document: unknown = target;
  for (const operation of patch) document = applyOperation(document, operation);
  if (!isObject(document)) throw patchRejected();
  return document;
}

function applyOperation(document: unknown, operation: unknown): unknown {
  if (!isObject(operation)) throw badRequest("error decoding patch: an operation must be an object");
  const path = segmentsOf(operation["path"]);
  switch (operation["op"]) {
    case "test":
      // If the parent exists, the real server treats an absent value like null.
      if (!jsonEqual(read(document, path) ?? null, operation["value"] ?? null)) throw patchRejected();
      return document;
    case "add":
      return write(document, path, (parent, key) => insert(parent, key, operation["value"]));
    case "replace":
      return write(document, path, (parent, key) => replace(parent, key, operation["value"]));
    case "remove":
      return write(document, path, remove);
    case "move": {
      const from = segmentsOf(operation["from"]);
      const value = read(document, from);
      return write(write(document, from, remove), path, (parent, key) => insert(parent, key, value));
    }
    case "copy": {
      const value = read(document, segmentsOf(operation["from"]));
      return write(document, path, (parent, key) => insert(parent, key, value));
    }
    default:
      throw patchRejected();
  }
}

/** RFC 6901. */
function segmentsOf(pointer: unknown): string[] {
  if (typeof pointer !== "string" || !pointer.startsWith("/")) throw patchRejected();
  const segments = pointer.slice(1).split("/");
  return segments.map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(document: unknown, path: readonly string[]): unknown {
  let value = document;
  path.forEach((segment, index) => {
    const isLast = index === path.length - 1;
    if (Array.isArray(value)) value = value[indexOf(segment, value.length - 1)];
    else if (isObject(value)) value = Object.hasOwn(value, segment) ? value[segment] : undefined;
    else throw patchRejected();
    if (value === undefined && !isLast) throw patchRejected();
  });
  return value;
}

type Parent = JsonObject | unknown[];

/** Copies each level down to the parent of `path`, and passes the copy of the parent to `change`. */
function write(node: unknown, path: readonly string[], change: (parent: Parent, key: string) => void): unknown {
  if (!Array.isArray(node) && !isObject(node)) throw patchRejected();
  const copy: Parent = Array.isArray(node) ? [...node] : { ...node };
  const [segment = "", ...rest] = path;
  if (rest.length === 0) change(copy, segment);
  else if (Array.isArray(copy)) {
    const index = indexOf(segment, copy.length - 1);
    copy[index] = write(copy[index], rest, change);
  } else {
    if (!Object.hasOwn(copy, segment)) throw patchRejected();
    copy[segment] = write(copy[segment], rest, change);
  }
  return copy;
}

function insert(parent: Parent, key: string, value: unknown): void {
  if (Array.isArray(parent)) parent.splice(key === "-" ? parent.length : indexOf(key, parent.length), 0, value);
  else parent[key] = value;
}

function replace(parent: Parent, key: string, value: unknown): void {
  if (Array.isArray(parent)) parent[indexOf(key, parent.length - 1)] = value;
  // Contrary to RFC 6902, the real server accepts `replace` for a missing member of an object.
  else parent[key] = value;
}

function remove(parent: Parent, key: string): void {
  if (Array.isArray(parent)) parent.splice(indexOf(key, parent.length - 1), 1);
  else {
    if (!Object.hasOwn(parent, key)) throw patchRejected();
    delete parent[key];
  }
}

function indexOf(segment: string, max: number): number {
  const index = /^(?:0|[1-9]\d*)$/.test(segment) ? Number(segment) : -1;
  if (index < 0 || index > max) throw patchRejected();
  return index;
}
