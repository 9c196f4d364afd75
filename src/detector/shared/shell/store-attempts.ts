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
 * @returns the health check after the write; undefined if it already has the attempts.
 * @throws KubeError: Conflict or Invalid if another writer changed the annotation in the meantime. The next evaluation
 *   decides again.
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
  // Without annotations, the patch sets the whole map. The guard prevents that it removes an annotation that was added
  // in the meantime.
  const guard = annotations === undefined ? { uid, resourceVersion } : { uid };
  const operations = [...tests, ...annotationPatch(annotations, REMEDIATION_ATTEMPTS, value)];
  return client.patch(type, keyOf(check), guard, operations, {}, signal);
}
