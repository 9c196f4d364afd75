import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { CLUSTER_API_GROUP } from "../../../api/cluster-api/cluster-api.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import { hasConditionWithAnyMessage } from "../../../api/cluster-api/machine-conditions.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import type { MachineFacts } from "./decision.ts";
import type { MachineCheckEvaluation } from "./evaluation.ts";

export const EXTERNALLY_REMEDIATED = "ExternallyRemediated";

/** The condition of a Machine for which no request can be created. */
export function requestProblem(
  { snapshot, nowMs }: MachineCheckEvaluation,
  { deferral }: MachineFacts,
): ConditionWrite[] {
  const { template, check } = snapshot;
  if (template !== undefined && "reason" in template) {
    const { kind = "", name = "" } = check.spec.template ?? {};
    const message = `Error retrieving remediation template ${kind} ${check.metadata.namespace}/${name}: ${template.message}`;
    return [external("RemediationTemplateNotFound", message)];
  }
  if (deferral?.cause !== "refused" || deferral.untilMs <= nowMs) return [];
  return [external("RemediationRequestCreationFailed", deferral.reason)];
}

/**
 * The condition of a Machine that has a request, unless another controller already reports the progress of the request
 * in it.
 */
export function waitingForRemediation(machine: Machine): ConditionWrite[] {
  const { reason } = conditionOn(machine, EXTERNALLY_REMEDIATED) ?? {};
  const isOurs = reason === "RemediationTemplateNotFound" || reason === "RemediationRequestCreationFailed";
  return reason === undefined || isOurs ? [external("WaitingForRemediation", "")] : [];
}

/**
 * The condition `ExternallyRemediated` with status False: the Machine waits for its remediation, or there is a reason
 * why none exists.
 */
export function external(reason: string, message: string): ConditionWrite {
  return { type: EXTERNALLY_REMEDIATED, status: "False", reason, message, v1beta1: undefined };
}

/**
 * Adds an action that writes the health conditions of the Machine, and `more`. v1beta1 has no condition
 * ExternallyRemediated, so the health check has the corresponding conditions instead.
 */
export function writeConditions(
  evaluation: MachineCheckEvaluation,
  { machine, health }: MachineFacts,
  more: readonly ConditionWrite[],
  unwanted: readonly string[] = [],
): void {
  const wanted = [...evaluation.kind.healthConditions(health), ...more].filter(
    (condition) => condition.type !== EXTERNALLY_REMEDIATED || knowsExternal(machine),
  );
  const missing = wanted.filter((condition) => !hasConditionWithAnyMessage(machine, condition));
  if (missing.length === 0 && unwanted.length === 0) return;
  const marks =
    health.state === "unhealthy" &&
    missing.some(({ type }) => type === "HealthCheckSucceeded" && conditionOn(machine, type)?.status !== "False");
  evaluation.decision.actions.push({
    type: "conditions",
    machine,
    health: health.state,
    wanted: missing,
    unwanted,
    marks,
  });
}

function knowsExternal({ apiVersion }: Machine): boolean {
  return apiVersion === `${CLUSTER_API_GROUP}/v1beta2`;
}

/** A condition of the Machine, of API version v1beta2 or v1beta1. */
export function conditionOn({ conditions, v1beta1Conditions }: Machine, type: string): Condition | undefined {
  return conditionOf(conditions, type) ?? conditionOf(v1beta1Conditions, type);
}
