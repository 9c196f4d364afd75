import {
  CLUSTER_API_GROUP,
  CLUSTER_API_VERSIONS,
  CLUSTER_NAME_LABEL,
  PAUSED_ANNOTATION,
  readCluster,
  readMachine,
  SKIP_REMEDIATION_ANNOTATION,
} from "../../../api/cluster-api/cluster-api.ts";
import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import { MACHINE_HEALTH_CHECK_KIND, readMachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { KindVersions } from "../../../kube/objects/served-kind.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";
import { judgeMachine } from "../decide/machine-health.ts";
import type { MachineHealth } from "../decide/observed-machine.ts";

/** The MachineHealthCheck of Cluster API, in v1beta2 or v1beta1. */
export const CLUSTER_API_CHECKS: MachineHealthCheckKind = {
  name: "machine-health-check",
  checks: servedKind(MACHINE_HEALTH_CHECK_KIND),
  machines: servedKind("Machine"),
  clusters: servedKind("Cluster"),
  readCheck: readMachineHealthCheck,
  readMachine,
  readCluster,
  covers: ({ spec }, { metadata }) =>
    metadata.labels?.[CLUSTER_NAME_LABEL] === spec.clusterName &&
    metadata.annotations?.[PAUSED_ANNOTATION] === undefined &&
    metadata.annotations?.[SKIP_REMEDIATION_ANNOTATION] === undefined,
  emptySelectsAll: false,
  judge: judgeMachine,
  remedy: ({ spec }) =>
    spec.template === undefined ? { type: "askOwner", ask: OWNER_REMEDIATED } : { type: "request" },
  statusFields: ["expectedMachines", "currentHealthy", "remediationsAllowed", "observedGeneration", "targets"],
  healthConditions,
};

function servedKind(kind: string): KindVersions {
  return { group: CLUSTER_API_GROUP, kind, versions: CLUSTER_API_VERSIONS };
}

/**
 * The condition that asks the owner for a replacement. The owner's controller reports its progress in the same
 * condition.
 */
const OWNER_REMEDIATED: ConditionWrite = {
  type: "OwnerRemediated",
  status: "False",
  reason: "WaitingForRemediation",
  message: "Waiting for remediation",
  v1beta1: { reason: "WaitingForRemediation", message: "", severity: "Warning" },
};

/** A Machine whose health is unknown, or whose duration is not over, keeps its conditions. */
function healthConditions(health: MachineHealth): ConditionWrite[] {
  if (health.state !== "healthy" && health.state !== "unhealthy") return [];
  const { reason, message, v1beta1 } =
    health.state === "unhealthy"
      ? health.fault
      : { reason: "HealthCheckSucceeded", message: "", v1beta1: { reason: "", message: "" } };
  return [
    {
      type: "HealthCheckSucceeded",
      status: health.state === "healthy" ? "True" : "False",
      reason,
      message,
      v1beta1: { ...v1beta1, severity: "Warning" },
    },
  ];
}
