import type { JsonPatchOperation } from "../client.ts";
import { pointer } from "./json-pointer.ts";
import type { KubeObject } from "../resource.ts";

/**
 * The patch that sets one field of an object. It also creates missing sections on the path to the field, which a JSON
 * patch does not do by itself.
 */
export function setField(object: KubeObject, path: readonly string[], value: unknown): JsonPatchOperation[] {
  let above: unknown = object;
  let isMissing = false;
  const operations: JsonPatchOperation[] = [];
  for (const [index, name] of path.slice(0, -1).entries()) {
    above = isMissing ? undefined : (above as Readonly<Record<string, unknown>>)[name];
    isMissing = typeof above !== "object" || above === null;
    if (isMissing) operations.push({ op: "add", path: pointer(...path.slice(0, index + 1)), value: {} });
  }
  return [...operations, { op: "add", path: pointer(...path), value }];
}
