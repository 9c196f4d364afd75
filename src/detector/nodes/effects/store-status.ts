import { isDeepStrictEqual } from "node:util";
import type { NodeHealthCheckStatus } from "../../../api/ironfence/node-health-check.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";
import { pointer } from "../../../kube/objects/json-pointer.ts";
import type { HealthCheckStore } from "../../shared/shell/health-check-store.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";

/**
 * Stores the fields of the status that have changed.
 *
 * @throws KubeError, Conflict if the health check was replaced or changed.
 */
export async function storeNodeCheckStatus(
  store: HealthCheckStore<HealthCheckObject>,
  check: HealthCheckObject,
  status: NodeHealthCheckStatus,
  signal: AbortSignal,
): Promise<void> {
  const operations = statusPatch(check.status, status);
  if (operations.length === 0) return;
  const isNew = Object.keys(check.status).length === 0;
  const whole: JsonPatchOperation[] = [{ op: "add", path: "/status", value: status }];
  await store.patch(check, check, isNew ? whole : operations, { subresource: "status" }, signal);
}

/**
 * The patch from one status to the other. It changes single fields, so that fields that this version does not know
 * stay.
 */
function statusPatch(before: NodeHealthCheckStatus, after: NodeHealthCheckStatus): JsonPatchOperation[] {
  if (before === after) return [];
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  const was = new Map<string, unknown>(Object.entries(before));
  const is = new Map<string, unknown>(Object.entries(after));
  return [...fields].flatMap((name): JsonPatchOperation[] => {
    const path = pointer("status", name);
    if (!is.has(name)) return [{ op: "remove", path }];
    return isDeepStrictEqual(was.get(name), is.get(name)) ? [] : [{ op: "add", path, value: is.get(name) }];
  });
}
