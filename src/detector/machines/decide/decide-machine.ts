import { ONE_MACHINE_AT_A_TIME } from "../../../api/names/annotations.ts";
import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { DEPLOYMENT_NAME_LABEL } from "../../../api/cluster-api/cluster-api.ts";
import type { ConditionWrite } from "../../../api/cluster-api/machine-conditions.ts";
import { nameOf } from "../../../kube/watched.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import { attemptAllowedAtMs, countAttempts, mustRecord } from "../../shared/model/attempts.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { MachineCheckSnapshot, MachineFacts } from "./decision.ts";
import type { Remedy } from "./kind.ts";
import type { MachineCheckEvaluation } from "./evaluation.ts";
import { checkAgain } from "../../shared/model/health-check-decision.ts";
import { announceMachine, concludeMachine, skipMachine } from "./evaluation.ts";
import {
  conditionOn,
  EXTERNALLY_REMEDIATED,
  writeConditions,
  waitingForRemediation,
  requestProblem,
  external,
} from "./conditions.ts";

/** The shortest and the longest pause before a failed request is repeated. */
const RETRY_MIN_MS = 600_000;
const RETRY_MAX_MS = 7_200_000;

/**
 * A Machine that fails when it is younger than this may be one of a series of replacements that all fail. Upstream uses
 * the same period for control plane Machines (`minHealthyPeriod`).
 */
const YOUNG_MS = 3_600_000;

/** Decides about one Machine. */
export function decideMachine(evaluation: MachineCheckEvaluation, facts: MachineFacts): void {
  const { health, deferral } = facts;
  if (deferral !== undefined && deferral.untilMs > evaluation.nowMs) checkAgain(evaluation, deferral.untilMs);
  switch (health.state) {
    case "healthy":
      return decideHealthy(evaluation, facts);
    case "waiting":
      checkAgain(evaluation, health.untilMs);
      announceMachine(evaluation, facts, "Normal", "DetectedUnhealthy", detectedNote(facts.machine));
      return concludeMachine(evaluation, facts, "waiting", `${health.reason}; unhealthy at ${toTime(health.untilMs)}`);
    case "unsettled":
    case "unknown":
      return concludeMachine(evaluation, facts, health.state, health.reason);
    case "unhealthy":
      return decideUnhealthy(evaluation, facts, health.fault.message);
    default:
      return health satisfies never;
  }
}

/**
 * The key under which the remediations of a Machine are counted; undefined if they are not counted. Replacements are
 * counted by their owner, because each new Machine has another name.
 */
export function attemptKey(machine: Machine, remedy: Remedy["type"]): string | undefined {
  if (remedy === "request") return machine.metadata.name;
  // The controller of the control plane counts its own replacements, and a power fencing agent counts its own attempts.
  if (machine.isControlPlane || remedy === "annotate") return undefined;
  const deployment = machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL];
  if (deployment !== undefined) return `MachineDeployment/${deployment}`;
  const owner = machine.metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner === undefined ? undefined : `${owner.kind}/${owner.name}`;
}

function decideHealthy(evaluation: MachineCheckEvaluation, facts: MachineFacts): void {
  const { machine, requests, neededBy } = facts;
  const isOver = conditionOn(machine, EXTERNALLY_REMEDIATED)?.status === "False" && requests.length === 0;
  writeConditions(evaluation, facts, [], isOver ? [EXTERNALLY_REMEDIATED] : []);
  if (requests.length === 0) return concludeMachine(evaluation, facts, "healthy", "it is healthy");
  if (neededBy !== undefined) {
    return concludeMachine(evaluation, facts, "remediating", `MachineHealthCheck ${neededBy} still finds it unhealthy`);
  }
  // An attempt must be recorded before its request is deleted, because until then the request is the only record of it.
  const isRecorded = record(evaluation, facts);
  for (const request of requests) {
    if (isRecorded && !request.terminating) evaluation.decision.actions.push({ type: "withdraw", machine, request });
  }
  return concludeMachine(evaluation, facts, "recovered", "it is healthy again: deleting its remediation request");
}

function decideUnhealthy(evaluation: MachineCheckEvaluation, facts: MachineFacts, found: string): void {
  const { kind, snapshot } = evaluation;
  const { machine, requests } = facts;
  const remedy = kind.remedy(snapshot.check, machine);
  const [request] = requests;
  if (request !== undefined) {
    const isRecorded = record(evaluation, facts);
    writeConditions(evaluation, facts, waitingForRemediation(machine));
    if (request.terminating)
      return concludeMachine(evaluation, facts, "waiting", "its last request is still being deleted");
    if (request.succeeded === "False") return decideFailed(evaluation, facts, request, { remedy, isRecorded });
    return concludeMachine(
      evaluation,
      facts,
      "remediating",
      `${request.object.kind} ${request.object.metadata.name} remediates it`,
    );
  }
  const obstacle = evaluation.gate ?? findObstacle(evaluation, facts, remedy);
  const problems = remedy.type === "request" ? requestProblem(evaluation, facts) : [];
  if (obstacle !== undefined) {
    writeConditions(evaluation, facts, problems);
    return concludeMachine(evaluation, facts, "skipped", `${found.replaceAll(/\n +\* /g, " ")}: ${obstacle}`);
  }
  switch (remedy.type) {
    case "request":
      return start(evaluation, facts, snapshot.template);
    case "askOwner":
      return askOwner(evaluation, facts, remedy.ask);
    case "delete":
      return replace(evaluation, facts, remedy);
    case "annotate":
      evaluation.decision.actions.push({ type: "annotate", machine, annotation: remedy.annotation });
      return concludeMachine(
        evaluation,
        facts,
        "annotate",
        `adding annotation ${remedy.annotation}, which starts power fencing`,
      );
    case "none":
      return writeConditions(evaluation, facts, []);
    default:
      return remedy satisfies never;
  }
}

/**
 * Deletes a failed request after a pause, so that the next evaluation creates another one. The pause is as long as the
 * outage of the Machine until the request failed. So it doubles with each attempt and needs no stored state.
 */
function decideFailed(
  evaluation: MachineCheckEvaluation,
  facts: MachineFacts,
  request: Remediation,
  { remedy, isRecorded }: { remedy: Remedy; isRecorded: boolean },
): void {
  const { machine } = facts;
  const { object, failure = "no reason given", succeededSinceMs, createdMs } = request;
  const { kind, metadata } = object;
  const failedMs = succeededSinceMs ?? createdMs ?? evaluation.nowMs;
  const outageMs = failedMs - unhealthySinceMs(facts, createdMs ?? failedMs);
  const dueMs = failedMs + Math.min(Math.max(outageMs, RETRY_MIN_MS), RETRY_MAX_MS);
  // If the host could not be fenced at some time after the failure and can be fenced now, the cause is fixed.
  const { fenceableSinceMs = -Infinity } = facts;
  const restartMs = fenceableSinceMs > failedMs ? Math.min(dueMs, fenceableSinceMs) : dueMs;
  const failed = `${kind} ${metadata.name} has failed (${failure})`;
  const byHand = `To try again now, delete it: kubectl delete ${kind.toLowerCase()} ${metadata.name} -n ${machine.metadata.namespace}`;
  const isWaiting = evaluation.nowMs < restartMs;
  if (isWaiting) checkAgain(evaluation, restartMs);
  const obstacle = isWaiting ? undefined : (evaluation.gate ?? findObstacle(evaluation, facts, remedy));
  if (isWaiting || obstacle !== undefined || remedy.type !== "request") {
    const next = isWaiting
      ? `The next try starts at ${toTime(restartMs)}`
      : `No retry starts now: ${obstacle ?? "the health check no longer names a template"}`;
    const reason = `${failed}. ${next}. ${byHand}`;
    announceMachine(evaluation, facts, "Warning", "RemediationFailed", `Machine ${nameOf(machine)}: ${reason}`);
    return concludeMachine(evaluation, facts, "failed", reason);
  }
  if (isRecorded) evaluation.decision.actions.push({ type: "renew", machine, request });
  return concludeMachine(evaluation, facts, "renew", `${failed}; deleting it to create another one`);
}

/**
 * Since when the Machine has been unhealthy: by its condition, otherwise since its first recorded attempt, otherwise
 * `fallbackMs`.
 */
function unhealthySinceMs({ machine, attempts }: MachineFacts, fallbackMs: number): number {
  const reported = conditionOn(machine, "HealthCheckSucceeded");
  const reportedMs = reported?.status === "False" ? parseTimeMs(reported.lastTransitionTime) : undefined;
  return reportedMs ?? attempts[0]?.startedMs ?? fallbackMs;
}

/**
 * Deletes one Machine per evaluation, so that each deletion is observed and counted before the next one is decided. If
 * the health check has the annotation `ONE_MACHINE_AT_A_TIME`, the next Machine also waits until the previous one no
 * longer exists. The documentation of OKD promises one at a time.
 */
function replace(evaluation: MachineCheckEvaluation, facts: MachineFacts, remedy: Remedy): void {
  const { machine } = facts;
  const { policy, deleting } = evaluation.snapshot;
  if (policy.oneAtATime && deleting !== undefined) {
    const why = `Machine ${deleting} is being deleted, and annotation ${ONE_MACHINE_AT_A_TIME} allows one at a time`;
    return concludeMachine(evaluation, facts, "waiting", why);
  }
  const first = evaluation.decision.actions.find(({ type }) => type === "delete");
  if (first !== undefined)
    return concludeMachine(
      evaluation,
      facts,
      "waiting",
      "another Machine is deleted first, because only one is deleted at a time",
    );
  if (!countReplacement(evaluation, facts, remedy)) return;
  evaluation.decision.actions.push({ type: "delete", machine });
  concludeMachine(evaluation, facts, "delete", "deleting it, so that its owner creates a new one");
}

/** Why this Machine gets no remediation now, as text for the operator. */
function findObstacle(evaluation: MachineCheckEvaluation, facts: MachineFacts, remedy: Remedy): string | undefined {
  const { snapshot, nowMs } = evaluation;
  const { machine, foreign, deferral, controlPlaneBusy } = facts;
  if (remedy.type === "none") {
    if (remedy.event === undefined) return remedy.reason;
    const note = `Machine ${nameOf(machine)} is not remediated: ${remedy.reason}`;
    announceMachine(evaluation, facts, "Normal", remedy.event, note);
    return remedy.reason;
  }
  if (machine.metadata.deletionTimestamp !== undefined) return "it is already being deleted";
  if (remedy.type === "request") {
    const { template } = snapshot;
    if (template === undefined || "reason" in template) return template?.message ?? "there is no template";
    if (foreign !== undefined) return skipMachine(evaluation, facts, foreign);
    const busy = machine.isControlPlane ? (controlPlaneBusy ?? evaluation.controlPlaneStarts) : undefined;
    if (busy !== undefined)
      return skipMachine(
        evaluation,
        facts,
        `control plane Machine ${busy} is being remediated, and only one may be at a time`,
      );
  }
  if (deferral !== undefined && deferral.untilMs > nowMs) return deferral.reason;
  return findSpentBudget(evaluation, facts, remedy);
}

function findSpentBudget(evaluation: MachineCheckEvaluation, facts: MachineFacts, remedy: Remedy): string | undefined {
  const { attemptBudget } = evaluation.snapshot.policy;
  const { machine } = facts;
  const key = attemptKey(machine, remedy.type);
  if (key === undefined || (remedy.type !== "request" && !isYoung(evaluation, machine))) return undefined;
  const attempts = attemptsOf(evaluation, facts, key);
  // This replacement was already counted when it was decided for the first time.
  if (attempts.some(({ uid }) => uid === machine.metadata.uid)) return undefined;
  const allowedMs = attemptAllowedAtMs(attemptBudget, attempts);
  if (allowedMs <= evaluation.nowMs) return undefined;
  checkAgain(evaluation, allowedMs);
  const times = `${attemptBudget.max} times in ${attemptBudget.windowMs / 60_000} minutes`;
  const what = remedy.type === "request" ? "it was remediated" : `new Machines of ${key} were replaced`;
  return skipMachine(
    evaluation,
    facts,
    `giving up until ${toTime(allowedMs)} unless the operator intervenes: ${what} ${times}`,
  );
}

function start(
  evaluation: MachineCheckEvaluation,
  facts: MachineFacts,
  template: MachineCheckSnapshot["template"],
): void {
  const { machine } = facts;
  if (template === undefined || "reason" in template) return;
  // The result of an earlier remediation must not look like the result of this one.
  const isOld = conditionOn(machine, EXTERNALLY_REMEDIATED)?.status === "True";
  writeConditions(evaluation, facts, isOld ? [external("WaitingForRemediation", "")] : []);
  if (machine.isControlPlane) evaluation.controlPlaneStarts = machine.metadata.name;
  evaluation.decision.actions.push({ type: "request", machine, template });
  concludeMachine(evaluation, facts, "create", `creating a ${template.type.kind} for it`);
}

/**
 * Asks the owner once. The owner reports its progress in the same condition, so the agent must not overwrite that
 * condition.
 */
function askOwner(evaluation: MachineCheckEvaluation, facts: MachineFacts, ask: ConditionWrite): void {
  const { machine } = facts;
  const asked = conditionOn(machine, ask.type);
  if (asked?.status === "False") {
    writeConditions(evaluation, facts, []);
    return concludeMachine(evaluation, facts, "remediating", `its owner was asked to replace it: ${asked.reason}`);
  }
  if (!countReplacement(evaluation, facts, { type: "askOwner", ask })) return undefined;
  writeConditions(evaluation, facts, [ask]);
  return concludeMachine(evaluation, facts, "ask", "asking its owner to replace it");
}

/**
 * Records the replacement of a Machine as an attempt if it must be counted.
 *
 * @returns whether the replacement may start. If not, it waits until the attempt is recorded.
 */
function countReplacement(evaluation: MachineCheckEvaluation, facts: MachineFacts, remedy: Remedy): boolean {
  const { machine } = facts;
  const key = attemptKey(machine, remedy.type);
  if (key === undefined || !isYoung(evaluation, machine) || evaluation.snapshot.isHistoryFull) return true;
  const attempts = attemptsOf(evaluation, facts, key);
  if (attempts.some(({ uid }) => uid === machine.metadata.uid)) return true;
  remember(evaluation, key, [...attempts, { uid: machine.metadata.uid, startedMs: evaluation.nowMs }]);
  concludeMachine(evaluation, facts, "waiting", "recording the attempt before it starts");
  return false;
}

/**
 * Whether the Machine failed soon after its creation. Without a limit, such a Machine would be replaced again and
 * again.
 */
function isYoung({ nowMs }: MachineCheckEvaluation, { nodeName, metadata }: Machine): boolean {
  const createdMs = parseTimeMs(metadata.creationTimestamp);
  return nodeName === undefined || createdMs === undefined || nowMs - createdMs < YOUNG_MS;
}

/**
 * Records the attempts of a Machine. @returns whether they are already stored. If not, no request may be deleted yet.
 */
function record(
  evaluation: MachineCheckEvaluation,
  { machine, requests, attempts: remembered }: MachineFacts,
): boolean {
  const attempts = countAttempts(remembered, requests, evaluation.nowMs);
  if (evaluation.snapshot.isHistoryFull || !mustRecord(remembered, requests, attempts)) return true;
  remember(evaluation, machine.metadata.name, attempts);
  return false;
}

function remember(evaluation: MachineCheckEvaluation, key: string, attempts: readonly CountedAttempt[]): void {
  evaluation.attempts.set(key, attempts);
  evaluation.decision.actions.push({ type: "recordAttempts", key, attempts });
}

function attemptsOf(evaluation: MachineCheckEvaluation, facts: MachineFacts, key: string): readonly CountedAttempt[] {
  return evaluation.attempts.get(key) ?? countAttempts(facts.attempts, [], evaluation.nowMs);
}

function detectedNote(machine: Machine): string {
  return `Machine ${nameOf(machine)} has unhealthy Node ${machine.nodeName ?? ""}`;
}
