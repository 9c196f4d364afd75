import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import type { Cluster } from "../../../api/cluster-api/cluster-api.ts";
import { CLUSTER_API_GROUP, PAUSED_ANNOTATION, PAUSED_FOR_OTHERS } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck, MachineHealthCheckStatus } from "../../../api/cluster-api/machine-health-check.ts";
import { MACHINE_HEALTH_CHECK_KIND } from "../../../api/cluster-api/machine-health-check.ts";
import type { MachineAnnouncement, MachineCheckDecision, MachineCheckSnapshot } from "./decision.ts";
import type { MachineHealthCheckKind } from "./kind.ts";
import { decideMachine } from "./decide-machine.ts";
import type { MachineCheckEvaluation } from "./evaluation.ts";
import { judgeUnhealthyLimit } from "./threshold.ts";

/** Reported because a misspelled selector would otherwise look as if every Machine were healthy. */
const NOTHING_SELECTED =
  "No Machine is selected: compare spec.selector and spec.clusterName with the labels of Machines";

/** Why a MachineHealthCheck starts no new remediation. */
interface MachineCheckGate {
  outcome: "blocked" | "unreachable" | "specInvalid" | "tooManyUnhealthy";
  /** The reason of the condition RemediationAllowed. */
  reason: string;
  message: string;
}

/**
 * Decides what one MachineHealthCheck does now. It does no I/O and reads no clock, so the same snapshot and time give
 * the same decision in the agent and in `ironfence explain`.
 *
 * A gate only prevents new remediations. The requests of Machines that are healthy again are still withdrawn, and every
 * Machine is evaluated.
 */
export function decideMachineCheck(
  kind: MachineHealthCheckKind,
  snapshot: MachineCheckSnapshot,
  nowMs: number,
): MachineCheckDecision {
  const { check, policy, machineNames, healthy } = snapshot;
  const expected = machineNames.length;
  const unhealthyLimit = judgeUnhealthyLimit(policy.unhealthyLimit, expected, expected - healthy);
  const gate = findGate(snapshot, unhealthyLimit.allowed ? undefined : unhealthyLimit.message);
  const evaluation: MachineCheckEvaluation = {
    kind,
    snapshot,
    nowMs,
    gate: gate?.message,
    attempts: new Map(),
    controlPlaneStarts: undefined,
    decision: { actions: [], standing: [], machines: [], nextCheckMs: undefined },
  };
  for (const facts of snapshot.machines) decideMachine(evaluation, facts);
  const { decision } = evaluation;
  const isAnyUnhealthy = snapshot.machines.some(
    ({ health }) => health.state === "unhealthy" || health.state === "unknown",
  );
  // Machines that have not started yet also count against the threshold. If there are no others, the Event would be
  // misleading.
  if (gate !== undefined && isAnyUnhealthy) {
    decision.standing.push(announce("Warning", "RemediationRestricted", gate.message));
  }
  if (expected === 0) decision.standing.push(announce("Normal", "NoMachineSelected", NOTHING_SELECTED));
  for (const problem of check.spec.problems) {
    decision.standing.push(announce("Warning", "HealthCheckIncomplete", problem));
  }
  const template = snapshot.template;
  if (template !== undefined && "reason" in template) {
    const isInvalid = template.reason === "RemediationTemplateInvalid";
    const reason = isInvalid ? "RemediationTemplateInvalid" : "RemediationTemplateNotFound";
    decision.standing.push(announce("Warning", reason, template.message));
  }
  const counted = {
    expectedMachines: expected,
    currentHealthy: healthy,
    targets: machineNames,
    observedGeneration: check.metadata.generation,
    remediationsAllowed: gate === undefined ? unhealthyLimit.remaining : 0,
  };
  return {
    ...decision,
    transitions: [],
    gate: gate === undefined ? undefined : { outcome: gate.outcome, reason: gate.message },
    // If the workload cluster is unreachable, the status keeps its last counts.
    status: withFields(check.status, snapshot.unreachable === undefined ? counted : { remediationsAllowed: 0 }),
    conditions: [remediationAllowed(gate, expected === 0 ? NOTHING_SELECTED : ""), ...templateConditions(snapshot)],
  };
}

/** The decision about a MachineHealthCheck whose spec is invalid. Its remediations in progress are left alone. */
export function decideUnusable({ status, metadata }: MachineHealthCheck, problem: string): MachineCheckDecision {
  return {
    gate: { outcome: "specInvalid", reason: problem },
    actions: [],
    status: withFields(status, { remediationsAllowed: 0, observedGeneration: metadata.generation }),
    conditions: [remediationAllowed({ outcome: "specInvalid", reason: "SpecInvalid", message: problem })],
    nextCheckMs: undefined,
    standing: [announce("Warning", "RemediationRestricted", problem)],
    transitions: [],
    machines: [],
  };
}

/** A status with these fields. Their order is always the same, because a replay compares the statuses as text. */
function withFields(
  status: MachineHealthCheckStatus,
  fields: Partial<MachineHealthCheckStatus>,
): MachineHealthCheckStatus {
  const all = { ...status, ...fields };
  return {
    expectedMachines: all.expectedMachines,
    currentHealthy: all.currentHealthy,
    remediationsAllowed: all.remediationsAllowed,
    observedGeneration: all.observedGeneration,
    targets: all.targets,
    conditions: all.conditions,
    v1beta1Conditions: all.v1beta1Conditions,
  };
}

/**
 * The condition Paused of a MachineHealthCheck. A health check that is paused, or whose Cluster is paused, only shows
 * this condition. The value `PAUSED_FOR_OTHERS` of the annotation pauses only the controller of Cluster API.
 */
export function pausedCondition({ metadata }: MachineHealthCheck, cluster: Cluster | undefined): ConditionWrite {
  const annotation = metadata.annotations?.[PAUSED_ANNOTATION];
  const causes = [
    ...(cluster?.paused === true ? ["Cluster spec.paused is set to true"] : []),
    ...(annotation === undefined || annotation === PAUSED_FOR_OTHERS
      ? []
      : [`${MACHINE_HEALTH_CHECK_KIND} has the ${PAUSED_ANNOTATION} annotation`]),
  ];
  const reason = causes.length > 0 ? "Paused" : "NotPaused";
  const message = causes.join(", ");
  return {
    type: "Paused",
    status: causes.length > 0 ? "True" : "False",
    reason,
    message,
    v1beta1: undefined,
  };
}

/**
 * Whether ironfence writes the condition Paused. v1beta1 does not have this condition. If only the controller of
 * Cluster API is paused, that controller writes it.
 */
export function showsPaused({ apiVersion, metadata }: MachineHealthCheck): boolean {
  return (
    apiVersion === `${CLUSTER_API_GROUP}/v1beta2` && metadata.annotations?.[PAUSED_ANNOTATION] !== PAUSED_FOR_OTHERS
  );
}

function findGate(
  { blocked, unreachable }: MachineCheckSnapshot,
  tooMany: string | undefined,
): MachineCheckGate | undefined {
  if (blocked !== undefined)
    return { outcome: "blocked", reason: "ViewStale", message: `No new remediation starts: ${blocked}` };
  if (unreachable !== undefined) {
    const message = `No new remediation starts: cannot read the Nodes of the Machines: ${unreachable}`;
    return { outcome: "unreachable", reason: "WorkloadClusterUnreachable", message };
  }
  return tooMany === undefined
    ? undefined
    : { outcome: "tooManyUnhealthy", reason: "TooManyUnhealthy", message: tooMany };
}

/** @param hint a message for the operator if remediation is allowed. */
function remediationAllowed(gate: MachineCheckGate | undefined, hint = ""): ConditionWrite {
  const { reason = "RemediationAllowed", message = hint } = gate ?? {};
  return {
    type: "RemediationAllowed",
    status: gate === undefined ? "True" : "False",
    reason,
    message,
    v1beta1: { reason, message, severity: "Warning" },
  };
}

/** The conditions that v1beta1 has on the health check and v1beta2 has on each Machine. */
function templateConditions({ check, template, machines }: MachineCheckSnapshot): ConditionWrite[] {
  if (template === undefined || !check.apiVersion.endsWith("/v1beta1")) return [];
  const missing = "reason" in template ? template.message : undefined;
  const refused = machines.find(({ deferral }) => deferral?.cause === "refused")?.deferral?.reason;
  return [
    availability("ExternalRemediationTemplateAvailable", "ExternalRemediationTemplateNotFound", missing),
    availability("ExternalRemediationRequestAvailable", "ExternalRemediationRequestCreationFailed", refused),
  ].filter(
    // Upstream writes neither of them before something fails.
    ({ type, status }) =>
      status === "False" || check.status.v1beta1Conditions.some((condition) => condition.type === type),
  );
}

function availability(type: string, reason: string, problem: string | undefined): ConditionWrite {
  return {
    type,
    status: problem === undefined ? "True" : "False",
    reason: problem === undefined ? type : reason,
    message: problem ?? "",
    v1beta1: { reason, message: problem ?? "", severity: "Error" },
  };
}

function announce(
  type: MachineAnnouncement["type"],
  reason: MachineAnnouncement["reason"],
  note: string,
): MachineAnnouncement {
  return { key: `${reason}/${note}`, type, reason, note };
}
