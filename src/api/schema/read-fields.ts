import { isRecord } from "../../runtime/record.ts";
import type { ObjectReference, Condition } from "./meta.ts";

// Objects of kinds that are not ours are read field by field: one that is missing or of another type is undefined, and
// what we do not know is passed over, so that no version of their CRDs can make an object unreadable.

/** The field at `path` inside `value`; undefined if any part of the way is missing. */
export function fieldAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return found;
}

/** A text that is there and not empty: Go writes an unset string as an empty one. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = fieldAt(value, ...path);
  return typeof found === "string" && found !== "" ? found : undefined;
}

/** Undefined if it is not said. */
export function flagAt(value: unknown, ...path: readonly string[]): boolean | undefined {
  const found = fieldAt(value, ...path);
  return typeof found === "boolean" ? found : undefined;
}

/** A whole number; undefined if it is none. */
export function integerAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = fieldAt(value, ...path);
  return typeof found === "number" && Number.isSafeInteger(found) ? found : undefined;
}

/** A list; empty if there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = fieldAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/**
 * Conditions of any form (`metav1.Condition`, Cluster API's v1beta1 with a severity, OKD's). Reason and message are empty
 * where they are not given, and so is a time.
 */
export function conditionsAt(value: unknown, ...path: readonly string[]): Condition[] {
  return listAt(value, ...path).flatMap((raw) => {
    const type = textAt(raw, "type");
    if (type === undefined) return [];
    const status = textAt(raw, "status");
    return {
      type,
      status: status === "True" || status === "False" ? status : "Unknown",
      reason: textAt(raw, "reason") ?? "",
      message: textAt(raw, "message") ?? "",
      lastTransitionTime: textAt(raw, "lastTransitionTime") ?? "",
    };
  });
}

/** A reference by kind and name; undefined if either is missing. */
export function referenceAt(
  value: unknown,
  ...path: readonly string[]
): (ObjectReference & { kind: string; name: string }) | undefined {
  const kind = textAt(value, ...path, "kind");
  const name = textAt(value, ...path, "name");
  if (kind === undefined || name === undefined) return undefined;
  const apiVersion = textAt(value, ...path, "apiVersion");
  const namespace = textAt(value, ...path, "namespace");
  const uid = textAt(value, ...path, "uid");
  return {
    kind,
    name,
    ...(apiVersion !== undefined && { apiVersion }),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
  };
}

/** Same as a condition of one type; undefined if there is none. */
export function conditionOf(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}
