import { isDeepStrictEqual } from "node:util";
import type { Fields } from "../../runtime/record.ts";
import { isRecord } from "../../runtime/record.ts";
import type { JsonPatchOperation } from "../client.ts";

/**
 * Applies an RFC 6902 patch. Its paths may lead through objects only, not through lists.
 *
 * @returns undefined if a `test` fails or a path does not exist.
 */
export function applyOperations(target: object, operations: readonly JsonPatchOperation[]): object | undefined {
  let result: object | undefined = target;
  for (const operation of operations) {
    const path = segmentsOf(operation.path);
    result = result && applyOperation(result as Fields, path, operation);
  }
  return result;
}

/** Applies an RFC 7386 merge patch. The result shares the fields that the patch does not name with `target`. */
export function mergeFields(target: object, patch: object): object {
  const merged: Record<string, unknown> = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (isRecord(value)) merged[name] = mergeFields(fieldsOf(merged[name]) ?? {}, value);
    else merged[name] = value;
  }
  return merged;
}

function applyOperation(fields: Fields, path: readonly string[], operation: JsonPatchOperation): Fields | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return undefined;
  if (rest.length > 0) {
    const inner = fieldsOf(fields[name]);
    const changed = inner && applyOperation(inner, rest, operation);
    return changed && { ...fields, [name]: changed };
  }
  const isThere = Object.hasOwn(fields, name);
  switch (operation.op) {
    case "test":
      return isDeepStrictEqual(fields[name] ?? null, operation.value ?? null) ? fields : undefined;
    case "add":
      return { ...fields, [name]: operation.value };
    case "replace":
      return isThere ? { ...fields, [name]: operation.value } : undefined;
    case "remove":
      return isThere ? Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name)) : undefined;
    default:
      return operation satisfies never;
  }
}

/** The segments of an RFC 6901 pointer, unescaped. */
function segmentsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function fieldsOf(value: unknown): Fields | undefined {
  return isRecord(value) ? value : undefined;
}
