import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { readCluster } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import {
  OKD_MACHINE_HEALTH_CHECKS,
  readOkdMachineHealthCheck,
  wantsExternalRemediation,
} from "../../../api/okd/okd-machine-health-check.ts";
import { EXTERNAL_REMEDIATION_ANNOTATION, OKD_MACHINES, readOkdMachine } from "../../../api/okd/okd-machine.ts";
import type { MachineHealthCheckKind, Remedy } from "../decide/kind.ts";
import type { HealthCriteria } from "../decide/machine-health.ts";
import { judgeNode } from "../decide/machine-health.ts";
import type { MachineHealth, ObservedMachine } from "../decide/observed-machine.ts";

/** The phase of a Machine that its provider has given up on. */
const FAILED = "Failed";

/** The MachineHealthCheck of OKD. The nodes of its Machines are in the agent's own cluster. */
export const OKD_CHECKS: MachineHealthCheckKind = {
  name: "okd-machine-health-check",
  checks: OKD_MACHINE_HEALTH_CHECKS,
  machines: OKD_MACHINES,
  clusters: undefined,
  readCheck: readOkdMachineHealthCheck,
  readMachine: readOkdMachine,
  readCluster,
  covers: () => true,
  emptySelectsAll: true,
  judge: judgeOkdMachine,
  remedy: chooseRemedy,
  statusFields: ["expectedMachines", "currentHealthy", "remediationsAllowed"],
  healthConditions: () => [],
};

/** A Machine in the phase Failed is unhealthy, whatever its Node reports. OKD checks in the same order. */
export function judgeOkdMachine(target: ObservedMachine, checks: HealthCriteria, nowMs: number): MachineHealth {
  const { phase } = target.machine;
  if (phase !== FAILED) return judgeNode(target, checks, nowMs);
  const message = `machine phase is ${FAILED}`;
  return {
    state: "unhealthy",
    fault: { reason: "MachineFailed", message, v1beta1: { reason: "MachineFailed", message } },
  };
}

/**
 * The remedy that OKD uses: a request if the health check has a template, otherwise power fencing if the health check
 * asks for it, otherwise deletion.
 */
export function chooseRemedy(check: MachineHealthCheck, machine: Machine): Remedy {
  if (check.spec.template !== undefined) return { type: "request" };
  const { annotations, deletionTimestamp, ownerReferences = [] } = machine.metadata;
  if (deletionTimestamp !== undefined) return { type: "none", reason: "it is being deleted" };
  // A Machine in the phase Failed may have no host to power-cycle.
  if (wantsExternalRemediation(check) && machine.phase !== FAILED) {
    return annotations?.[EXTERNAL_REMEDIATION_ANNOTATION] === undefined
      ? { type: "annotate", annotation: EXTERNAL_REMEDIATION_ANNOTATION }
      : { type: "none", reason: "external remediation is already requested" };
  }
  if (machine.isControlPlane) return skip("SkippedMaster", "control plane Machines are never deleted");
  if (!ownerReferences.some(({ controller }) => controller === true)) {
    return skip("SkippedNoController", "it has no controller owner, so nothing would create a new one");
  }
  return { type: "delete" };
}

function skip(event: "SkippedMaster" | "SkippedNoController", reason: string): Remedy {
  return { type: "none", reason, event };
}
