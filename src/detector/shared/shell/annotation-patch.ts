import type { JsonPatchOperation } from "../../../kube/client.ts";
import { pointer } from "../../../kube/objects/json-pointer.ts";

/** The patch that sets an annotation or, without a value, removes it. */
export function annotationPatch(
  before: Readonly<Record<string, string>> | undefined,
  annotation: string,
  value: string | undefined,
): JsonPatchOperation[] {
  const path = pointer("metadata", "annotations", annotation);
  if (value === undefined) return [{ op: "remove", path }];
  if (before === undefined) return [{ op: "add", path: "/metadata/annotations", value: { [annotation]: value } }];
  return [{ op: "add", path, value }];
}
