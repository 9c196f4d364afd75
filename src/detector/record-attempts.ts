import { REMEDIATION_ATTEMPTS } from "../api/annotations.ts";
import { NODE_HEALTH_CHECKS } from "../api/node-health-check.ts";
import type { JsonPatchOperation, KubeClient } from "../kube/client.ts";
import { pointer } from "../kube/json-pointer.ts";
import type { KubeObject } from "../kube/resource.ts";
import { annotationPatch } from "./actions.ts";
import type { AttemptBook } from "./attempts.ts";
import { readAttempts, writeAttempts } from "./attempts.ts";
import type { HealthCheckObject } from "./health-check.ts";
import { trimHealthCheck } from "./health-check.ts";

/**
 * Has a health check remember attempts: those of all nodes that changed in one write, since thousands may at once.
 *
 * @returns the health check as it is now; undefined where it says so already.
 * @throws KubeError, Conflict or Invalid where somebody else wrote the annotation meanwhile: it is decided on anew then.
 */
export async function recordAttempts(
  client: KubeClient,
  check: HealthCheckObject,
  changes: AttemptBook,
  nowMs: number,
  signal: AbortSignal,
): Promise<HealthCheckObject | undefined> {
  const { name, uid, resourceVersion, annotations } = check.metadata;
  const before = annotations?.[REMEDIATION_ATTEMPTS];
  const value = writeAttempts(readAttempts(check), changes, nowMs);
  if (value === before) return undefined;
  const path = pointer("metadata", "annotations", REMEDIATION_ATTEMPTS);
  const tests: JsonPatchOperation[] = before === undefined ? [] : [{ op: "test", path, value: before }];
  // An object without annotations gets them all at once, which must not take off what came meanwhile.
  const guard = annotations === undefined ? { uid, resourceVersion } : { uid };
  const operations = [...tests, ...annotationPatch(annotations, REMEDIATION_ATTEMPTS, value)];
  return trimHealthCheck(await client.patch<KubeObject>(NODE_HEALTH_CHECKS, { name }, guard, operations, {}, signal));
}
