import { isDeepStrictEqual } from "node:util";
import type { Cluster } from "../../../api/cluster-api/cluster-api.ts";
import { CLUSTER_NAME_LABEL } from "../../../api/cluster-api/cluster-api.ts";
import { fieldAt } from "../../../api/schema/read-fields.ts";
import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import { changeConditions, hasCondition } from "../../../api/cluster-api/machine-conditions.ts";
import type { MachineHealthCheck, MachineHealthCheckStatus } from "../../../api/cluster-api/machine-health-check.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";
import { pointer } from "../../../kube/objects/json-pointer.ts";
import { setField } from "../../../kube/objects/set-field.ts";
import type { HealthCheckStore } from "../../shared/shell/health-check-store.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";

type Store = HealthCheckStore<MachineHealthCheck>;

/**
 * Stores the fields and conditions of the status that have changed. The health check is read first, because the view
 * keeps only the fields that decisions need.
 *
 * @throws KubeError, Conflict if the health check was replaced or changed.
 */
export async function storeMachineCheckStatus(
  store: Store,
  { statusFields }: Pick<MachineHealthCheckKind, "statusFields">,
  check: MachineHealthCheck,
  shown: { status: MachineHealthCheckStatus; conditions: readonly ConditionWrite[] },
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { status, conditions } = shown;
  const forms = { ...check.status, apiVersion: check.apiVersion };
  const isSame = statusFields.every((name) => isDeepStrictEqual(check.status[name], status[name]));
  if (isSame && conditions.every((condition) => hasCondition(forms, condition))) return;
  const raw = await store.readLive(check, signal);
  const operations: JsonPatchOperation[] = fieldAt(raw, "status") === undefined ? [setStatus({})] : [];
  for (const name of statusFields) {
    const value = status[name];
    if (value !== undefined && !isDeepStrictEqual(fieldAt(raw, "status", name), value)) {
      operations.push({ op: "add", path: pointer("status", name), value });
    }
  }
  for (const change of changeConditions(raw, conditions, [], nowMs)) {
    operations.push({ op: "add", path: pointer(...change.path), value: change.conditions });
  }
  await store.patch(check, raw, operations, { subresource: "status" }, signal);
}

/**
 * Labels the health check with the name of its Cluster, and makes the Cluster its owner, so that Cluster API moves and
 * deletes both together.
 */
export async function adopt(
  store: Store,
  check: MachineHealthCheck,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<void> {
  const { labels, ownerReferences = [] } = check.metadata;
  const { name, uid } = cluster.metadata;
  if (labels?.[CLUSTER_NAME_LABEL] === name && ownerReferences.some((owner) => owner.uid === uid)) return;
  const raw = await store.readLive(check, signal);
  const owners = (raw.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid);
  const owner = { apiVersion: cluster.apiVersion, kind: cluster.kind, name, uid };
  const operations = [
    ...setField(raw, ["metadata", "labels", CLUSTER_NAME_LABEL], name),
    ...setField(raw, ["metadata", "ownerReferences"], [...owners, owner]),
  ];
  await store.patch(check, raw, operations, {}, signal);
}

function setStatus(value: object): JsonPatchOperation {
  return { op: "add", path: "/status", value };
}
