import { REMEDIATION_ATTEMPTS } from "../../../api/names/annotations.ts";
import type { JsonPatchOperation, KubeClient } from "../../../kube/client.ts";
import { pointer } from "../../../kube/objects/json-pointer.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { keyOf } from "../../../kube/watched.ts";
import { annotationPatch } from "./annotation-patch.ts";
import type { AttemptHistory } from "../model/attempts.ts";
import { readAttempts, writeAttempts } from "../model/attempts.ts";

/**
 * Records attempts in a health check: one write for all nodes that changed, because thousands may change at once.
 *
 * @returns the health check as the server holds it now; undefined if it has them already.
 * @throws KubeError: Conflict or Invalid if another writer changed the annotation meanwhile; the next evaluation
 * decides again.
 */
export async function storeAttempts(
  client: KubeClient,
  type: ResourceType,
  check: KubeObject,
  changes: AttemptHistory,
  nowMs: number,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const { uid, resourceVersion, annotations } = check.metadata;
  const before = annotations?.[REMEDIATION_ATTEMPTS];
  const value = writeAttempts(readAttempts(check), changes, nowMs);
  if (value === before) return undefined;
  const path = pointer("metadata", "annotations", REMEDIATION_ATTEMPTS);
  const tests: JsonPatchOperation[] = before === undefined ? [] : [{ op: "test", path, value: before }];
  // For an object without annotations, the patch sets all annotations, and must not remove one that was added
  // meanwhile.
  const guard = annotations === undefined ? { uid, resourceVersion } : { uid };
  const operations = [...tests, ...annotationPatch(annotations, REMEDIATION_ATTEMPTS, value)];
  return client.patch(type, keyOf(check), guard, operations, {}, signal);
}
