import { isRecord } from "../../runtime/record.ts";
import { sharedText } from "../../runtime/text/shared-text.ts";
import type { ObjectReference, Condition } from "./meta.ts";

// Objects of kinds that other projects define are read field by field. A field that is missing or has another type is
// undefined, and unknown fields are ignored, so that no version of a CRD can make an object unreadable.

/** Undefined for anything that is not JSON, because users edit annotations. */
export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The field at `path` inside `value`; undefined if any part of the path is missing. */
export function fieldAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return found;
}

/** A text; undefined if it is empty, because Go writes a string that is not set as an empty one. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = fieldAt(value, ...path);
  return typeof found === "string" && found !== "" ? found : undefined;
}

/** A boolean; undefined if there is none. */
export function flagAt(value: unknown, ...path: readonly string[]): boolean | undefined {
  const found = fieldAt(value, ...path);
  return typeof found === "boolean" ? found : undefined;
}

/** A whole number; undefined if there is none. */
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
 * Conditions in any form: `metav1.Condition`, v1beta1 of Cluster API, or OKD. A missing reason, message or time is read
 * as empty text.
 */
export function conditionsAt(value: unknown, ...path: readonly string[]): Condition[] {
  return listAt(value, ...path).flatMap((raw) => {
    const type = textAt(raw, "type");
    if (type === undefined) return [];
    const status = textAt(raw, "status");
    return {
      type: sharedText(type),
      status: status === "True" || status === "False" ? status : "Unknown",
      reason: sharedText(textAt(raw, "reason") ?? ""),
      message: textAt(raw, "message") ?? "",
      lastTransitionTime: sharedText(textAt(raw, "lastTransitionTime") ?? ""),
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

/** The condition of one type; undefined if there is none. */
export function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}
