import type { NodeHealthCheckStatus } from "../../../api/ironfence/node-health-check.ts";
import { nodeHealthCheckStatusSchema } from "../../../api/ironfence/node-health-check.ts";
import { trimMeta } from "../../../api/kubernetes/trim.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { field } from "../../shared/model/remediation.ts";

/**
 * A NodeHealthCheck as the API server stores it. Its spec may have any form if the CRD of another operator is
 * installed.
 */
export interface HealthCheckObject extends KubeObject {
  spec: unknown;
  /** Empty if it cannot be parsed. The detector then creates its records again from the CRs. */
  status: NodeHealthCheckStatus;
}

export function trimHealthCheck(raw: KubeObject): HealthCheckObject {
  const status = nodeHealthCheckStatusSchema.safeParse(field(raw, "status") ?? {});
  return {
    apiVersion: raw.apiVersion,
    kind: raw.kind,
    metadata: trimMeta(raw.metadata),
    spec: field(raw, "spec"),
    status: status.success ? status.data : {},
  };
}

/** Whether `a` is older than `b`. The older of two health checks handles a node that both select. */
export function isOlder(a: HealthCheckObject, b: HealthCheckObject): boolean {
  const [createdA, createdB] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  return createdA === createdB ? a.metadata.name < b.metadata.name : createdA < createdB;
}
