import { ONE_MACHINE_AT_A_TIME } from "../../../api/annotations.ts";
import type { Machine } from "../../../api/cluster-api.ts";
import { CLUSTER_API_GROUP, DEPLOYMENT_NAME_LABEL } from "../../../api/cluster-api.ts";
import type { Condition } from "../../../api/meta.ts";
import type { ConditionWrite } from "../../../api/machine-conditions.ts";
import { agrees } from "../../../api/machine-conditions.ts";
import { conditionOf } from "../../../api/foreign.ts";
import { nameOf } from "../../../kube/watched.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import { attemptAllowedAtMs, countAttempts, mustRecord } from "../../shared/model/attempts.ts";
import type { CountedAttempt } from "../../shared/model/attempts.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import type { MachineDecision, MachineEventReason, MachineSnapshot, TargetFacts } from "./decision.ts";
import type { MachineHealthCheckKind, Remedy } from "./kind.ts";

/** One run of `decide`: what it was given, and what it has found out so far. */
export interface TargetPass {
  readonly kind: MachineHealthCheckKind;
  readonly snapshot: MachineSnapshot;
  readonly nowMs: number;
  /** Why nothing new may start, in words. */
  readonly gate: string | undefined;
  /** Attempts of this pass by their key, on top of what is remembered. */
  readonly attempts: Map<string, readonly CountedAttempt[]>;
  /** The control plane machine that gets a request in this pass. */
  controlPlaneStarts: string | undefined;
  readonly decision: Pick<MachineDecision, "actions" | "standing" | "machines" | "nextCheckMs">;
}

/** Shortest and longest pause before a request that failed is made again. */
const RETRY_MIN_MS = 600_000;
const RETRY_MAX_MS = 7_200_000;
const EXTERNALLY_REMEDIATED = "ExternallyRemediated";
/**
 * A machine that fails before it has been of use for so long may be one of a row of replacements that all fail; it is how long
 * a control plane's machine must last upstream (`minHealthyPeriod`).
 */
const YOUNG_MS = 3_600_000;

/** Decides about one target. */
export function planTarget(pass: TargetPass, facts: TargetFacts): void {
  const { health, hold } = facts;
  if (hold !== undefined && hold.untilMs > pass.nowMs) checkAgain(pass, hold.untilMs);
  switch (health.state) {
    case "healthy":
      return planHealthy(pass, facts);
    case "waiting":
      checkAgain(pass, health.untilMs);
      tell(pass, facts, "Normal", "DetectedUnhealthy", detectedNote(facts.machine));
      return verdict(pass, facts, "waiting", `${health.reason}; unhealthy at ${toTime(health.untilMs)}`);
    case "unsettled":
    case "unknown":
      return verdict(pass, facts, health.state, health.reason);
    case "unhealthy":
      return planUnhealthy(pass, facts, health.fault.message);
    default:
      return health satisfies never;
  }
}

/** The key under which a machine's remediations are counted: replacements of one machine are another machine each. */
export function attemptKey(machine: Machine, remedy: Remedy["type"]): string | undefined {
  if (remedy === "request") return machine.metadata.name;
  // A control plane's own controller counts its machines, and whoever does power fencing its attempts.
  if (machine.isControlPlane || remedy === "annotate") return undefined;
  const deployment = machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL];
  if (deployment !== undefined) return `MachineDeployment/${deployment}`;
  const owner = machine.metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner === undefined ? undefined : `${owner.kind}/${owner.name}`;
}

function planHealthy(pass: TargetPass, facts: TargetFacts): void {
  const { machine, requests, neededBy } = facts;
  const isOver = conditionOn(machine, EXTERNALLY_REMEDIATED)?.status === "False" && requests.length === 0;
  writeConditions(pass, facts, [], isOver ? [EXTERNALLY_REMEDIATED] : []);
  if (requests.length === 0) return verdict(pass, facts, "healthy", "it is healthy");
  if (neededBy !== undefined) {
    return verdict(pass, facts, "remediating", `MachineHealthCheck ${neededBy} still finds it unhealthy`);
  }
  // Until an attempt is remembered its request is the only record of it.
  const isRecorded = record(pass, facts);
  for (const request of requests) {
    if (isRecorded && !request.terminating) pass.decision.actions.push({ type: "withdraw", machine, request });
  }
  return verdict(pass, facts, "recovered", "it is healthy again: its remediation request is deleted");
}

function planUnhealthy(pass: TargetPass, facts: TargetFacts, found: string): void {
  const { kind, snapshot } = pass;
  const { machine, requests } = facts;
  const remedy = kind.remedy(snapshot.check, machine);
  const [request] = requests;
  if (request !== undefined) {
    const isRecorded = record(pass, facts);
    writeConditions(pass, facts, waitingForRemediation(machine));
    if (request.terminating) return verdict(pass, facts, "waiting", "its last request is still being deleted");
    if (request.succeeded === "False") return planFailed(pass, facts, request, { remedy, isRecorded });
    return verdict(
      pass,
      facts,
      "remediating",
      `${request.object.kind} ${request.object.metadata.name} is there for it`,
    );
  }
  const obstacle = pass.gate ?? findObstacle(pass, facts, remedy);
  const told = remedy.type === "request" ? requestProblem(pass, facts) : [];
  if (obstacle !== undefined) {
    writeConditions(pass, facts, told);
    return verdict(pass, facts, "skipped", `${found.replaceAll(/\n +\* /g, " ")}: ${obstacle}`);
  }
  switch (remedy.type) {
    case "request":
      return start(pass, facts, snapshot.template);
    case "askOwner":
      return askOwner(pass, facts, remedy.ask);
    case "delete":
      return replace(pass, facts, remedy);
    case "annotate":
      pass.decision.actions.push({ type: "annotate", machine, annotation: remedy.annotation });
      return verdict(pass, facts, "annotate", `it gets annotation ${remedy.annotation}, by which power fencing begins`);
    case "none":
      return writeConditions(pass, facts, []);
    default:
      return remedy satisfies never;
  }
}

/**
 * Has a request that failed deleted after a pause, so that the next pass makes another one. The pause is as long as the machine had
 * been unhealthy when the request failed: it doubles with each try, and nothing has to be remembered for that.
 */
function planFailed(
  pass: TargetPass,
  facts: TargetFacts,
  request: Remediation,
  { remedy, isRecorded }: { remedy: Remedy; isRecorded: boolean },
): void {
  const { machine } = facts;
  const { object, failure = "no reason given", succeededSinceMs, createdMs } = request;
  const { kind, metadata } = object;
  const failedMs = succeededSinceMs ?? createdMs ?? pass.nowMs;
  const outageMs = failedMs - unhealthySinceMs(facts, createdMs ?? failedMs);
  const dueMs = failedMs + Math.min(Math.max(outageMs, RETRY_MIN_MS), RETRY_MAX_MS);
  // What it failed for is mended once its host can be fenced again, which it could not at some time after the failure.
  const { fenceableSinceMs = -Infinity } = facts;
  const restartMs = fenceableSinceMs > failedMs ? Math.min(dueMs, fenceableSinceMs) : dueMs;
  const failed = `${kind} ${metadata.name} has failed (${failure})`;
  const byHand = `To try again now, delete it: kubectl delete ${kind.toLowerCase()} ${metadata.name} -n ${machine.metadata.namespace}`;
  const isWaiting = pass.nowMs < restartMs;
  if (isWaiting) checkAgain(pass, restartMs);
  const obstacle = isWaiting ? undefined : (pass.gate ?? findObstacle(pass, facts, remedy));
  if (isWaiting || obstacle !== undefined || remedy.type !== "request") {
    const next = isWaiting
      ? `The next try starts at ${toTime(restartMs)}`
      : `It is not tried again now: ${obstacle ?? "the health check names no template any more"}`;
    const reason = `${failed}. ${next}. ${byHand}`;
    tell(pass, facts, "Warning", "RemediationFailed", `Machine ${nameOf(machine)}: ${reason}`);
    return verdict(pass, facts, "failed", reason);
  }
  if (isRecorded) pass.decision.actions.push({ type: "renew", machine, request });
  return verdict(pass, facts, "renew", `${failed}; it is deleted, and another one follows`);
}

/** Since when the machine has been unhealthy, as it says itself; `fallbackMs` where nothing tells. */
function unhealthySinceMs({ machine, attempts }: TargetFacts, fallbackMs: number): number {
  const said = conditionOn(machine, "HealthCheckSucceeded");
  const saidMs = said?.status === "False" ? parseTimeMs(said.lastTransitionTime) : undefined;
  return saidMs ?? attempts[0]?.startedMs ?? fallbackMs;
}

/**
 * Deletes one machine a pass: each deletion is seen, and counted, before the next one is decided. Where the health check asks for
 * it the next machine waits until the one before has gone: OKD's documents promise that one at a time is drained and deleted.
 */
function replace(pass: TargetPass, facts: TargetFacts, remedy: Remedy): void {
  const { machine } = facts;
  const { policy, deleting } = pass.snapshot;
  if (policy.oneAtATime && deleting !== undefined) {
    const why = `Machine ${deleting} is being deleted, and annotation ${ONE_MACHINE_AT_A_TIME} allows one at a time`;
    return verdict(pass, facts, "waiting", why);
  }
  const first = pass.decision.actions.find(({ type }) => type === "delete");
  if (first !== undefined) return verdict(pass, facts, "waiting", "another machine is deleted first, one at a time");
  if (!countReplacement(pass, facts, remedy)) return;
  pass.decision.actions.push({ type: "delete", machine });
  verdict(pass, facts, "delete", "it is deleted, so that its owner makes a new one");
}

/** Why this machine gets no remediation now, in words. */
function findObstacle(pass: TargetPass, facts: TargetFacts, remedy: Remedy): string | undefined {
  const { snapshot, nowMs } = pass;
  const { machine, foreign, hold, controlPlaneBusy } = facts;
  if (remedy.type === "none") {
    if (remedy.event === undefined) return remedy.reason;
    const note = `Machine ${nameOf(machine)} is not remediated: ${remedy.reason}`;
    tell(pass, facts, "Normal", remedy.event, note);
    return remedy.reason;
  }
  if (machine.metadata.deletionTimestamp !== undefined) return "it is being deleted already";
  if (remedy.type === "request") {
    const { template } = snapshot;
    if (template === undefined || "reason" in template) return template?.message ?? "there is no template";
    if (foreign !== undefined) return skip(pass, facts, foreign);
    const busy = machine.isControlPlane ? (controlPlaneBusy ?? pass.controlPlaneStarts) : undefined;
    if (busy !== undefined) return skip(pass, facts, `control plane machine ${busy} is in remediation, one at a time`);
  }
  if (hold !== undefined && hold.untilMs > nowMs) return hold.reason;
  return findSpentBudget(pass, facts, remedy);
}

function findSpentBudget(pass: TargetPass, facts: TargetFacts, remedy: Remedy): string | undefined {
  const { attemptBudget } = pass.snapshot.policy;
  const { machine } = facts;
  const key = attemptKey(machine, remedy.type);
  if (key === undefined || (remedy.type !== "request" && !isYoung(pass, machine))) return undefined;
  const attempts = attemptsOf(pass, facts, key);
  // It was counted when its owner was asked before.
  if (attempts.some(({ uid }) => uid === machine.metadata.uid)) return undefined;
  const allowedMs = attemptAllowedAtMs(attemptBudget, attempts);
  if (allowedMs <= pass.nowMs) return undefined;
  checkAgain(pass, allowedMs);
  const times = `${attemptBudget.max} times in ${attemptBudget.windowMs / 60_000} minutes`;
  const whom =
    remedy.type === "request" ? "it was remediated" : `machines of ${key} were replaced before they were of use`;
  return skip(pass, facts, `left for people: ${whom} ${times}; nothing more is tried before ${toTime(allowedMs)}`);
}

function start(pass: TargetPass, facts: TargetFacts, template: MachineSnapshot["template"]): void {
  const { machine } = facts;
  if (template === undefined || "reason" in template) return;
  // What an earlier remediation came to must not be taken for this one's.
  const isOld = conditionOn(machine, EXTERNALLY_REMEDIATED)?.status === "True";
  writeConditions(pass, facts, isOld ? [external("WaitingForRemediation", "")] : []);
  if (machine.isControlPlane) pass.controlPlaneStarts = machine.metadata.name;
  pass.decision.actions.push({ type: "request", machine, template });
  verdict(pass, facts, "create", `a ${template.type.kind} is created for it`);
}

/** Asks the owner once: what becomes of it is the owner's to say, and must not be overwritten. */
function askOwner(pass: TargetPass, facts: TargetFacts, ask: ConditionWrite): void {
  const { machine } = facts;
  const asked = conditionOn(machine, ask.type);
  if (asked?.status === "False") {
    writeConditions(pass, facts, []);
    return verdict(pass, facts, "remediating", `its owner was asked to replace it: ${asked.reason}`);
  }
  if (!countReplacement(pass, facts, { type: "askOwner", ask })) return undefined;
  writeConditions(pass, facts, [ask]);
  return verdict(pass, facts, "ask", "its owner is asked to replace it");
}

/** Has the replacement of a machine counted where it counts. @returns whether it is: if not, wait. */
function countReplacement(pass: TargetPass, facts: TargetFacts, remedy: Remedy): boolean {
  const { machine } = facts;
  const key = attemptKey(machine, remedy.type);
  if (key === undefined || !isYoung(pass, machine) || pass.snapshot.isHistoryFull) return true;
  const attempts = attemptsOf(pass, facts, key);
  if (attempts.some(({ uid }) => uid === machine.metadata.uid)) return true;
  remember(pass, key, [...attempts, { uid: machine.metadata.uid, startedMs: pass.nowMs }]);
  verdict(pass, facts, "waiting", "the attempt is remembered before it is made");
  return false;
}

/** Whether the machine failed before it was of use for long: such a one may be replaced over and over. */
function isYoung({ nowMs }: TargetPass, { nodeName, metadata }: Machine): boolean {
  const createdMs = parseTimeMs(metadata.creationTimestamp);
  return nodeName === undefined || createdMs === undefined || nowMs - createdMs < YOUNG_MS;
}

/** What the machine is to say while no request can be made for it. */
function requestProblem({ snapshot, nowMs }: TargetPass, { hold }: TargetFacts): ConditionWrite[] {
  const { template, check } = snapshot;
  if (template !== undefined && "reason" in template) {
    const { kind = "", name = "" } = check.spec.template ?? {};
    const message = `Error retrieving remediation template ${kind} ${check.metadata.namespace}/${name}: ${template.message}`;
    return [external("RemediationTemplateNotFound", message)];
  }
  if (hold?.cause !== "refused" || hold.untilMs <= nowMs) return [];
  return [external("RemediationRequestCreationFailed", hold.reason)];
}

/** Somebody else says what becomes of the request, once it is there. */
function waitingForRemediation(machine: Machine): ConditionWrite[] {
  const { reason } = conditionOn(machine, EXTERNALLY_REMEDIATED) ?? {};
  const isOurs = reason === "RemediationTemplateNotFound" || reason === "RemediationRequestCreationFailed";
  return reason === undefined || isOurs ? [external("WaitingForRemediation", "")] : [];
}

function external(reason: string, message: string): ConditionWrite {
  return { type: EXTERNALLY_REMEDIATED, status: "False", reason, message, v1beta1: undefined };
}

/** Has the machine say how it is, and `more`. v1beta1 knows no ExternallyRemediated: the health check tells there. */
function writeConditions(
  pass: TargetPass,
  { machine, health }: TargetFacts,
  more: readonly ConditionWrite[],
  unwanted: readonly string[] = [],
): void {
  const wanted = [...pass.kind.healthConditions(health), ...more].filter(
    (condition) => condition.type !== EXTERNALLY_REMEDIATED || knowsExternal(machine),
  );
  const missing = wanted.filter((condition) => !agrees(machine, condition));
  if (missing.length === 0 && unwanted.length === 0) return;
  const marks =
    health.state === "unhealthy" &&
    missing.some(({ type }) => type === "HealthCheckSucceeded" && conditionOn(machine, type)?.status !== "False");
  pass.decision.actions.push({ type: "conditions", machine, health: health.state, wanted: missing, unwanted, marks });
}

function knowsExternal({ apiVersion }: Machine): boolean {
  return apiVersion === `${CLUSTER_API_GROUP}/v1beta2`;
}

/** A condition in whichever form the machine has it. */
function conditionOn({ conditions, v1beta1Conditions }: Machine, type: string): Condition | undefined {
  return conditionOf(conditions, type) ?? conditionOf(v1beta1Conditions, type);
}

/** Keeps the count of requests. @returns whether it is kept: if not, wait. */
function record(pass: TargetPass, { machine, requests, attempts: remembered }: TargetFacts): boolean {
  const attempts = countAttempts(remembered, requests, pass.nowMs);
  if (pass.snapshot.isHistoryFull || !mustRecord(remembered, requests, attempts)) return true;
  remember(pass, machine.metadata.name, attempts);
  return false;
}

function remember(pass: TargetPass, key: string, attempts: readonly CountedAttempt[]): void {
  pass.attempts.set(key, attempts);
  pass.decision.actions.push({ type: "recordAttempts", key, attempts });
}

function attemptsOf(pass: TargetPass, facts: TargetFacts, key: string): readonly CountedAttempt[] {
  return pass.attempts.get(key) ?? countAttempts(facts.attempts, [], pass.nowMs);
}

function detectedNote(machine: Machine): string {
  return `Machine ${nameOf(machine)} has unhealthy Node ${machine.nodeName ?? ""}`;
}

/** Keeps a machine from a remediation, and tells people as long as the reason stands. */
function skip(pass: TargetPass, facts: TargetFacts, reason: string): string {
  tell(pass, facts, "Warning", "RemediationSkipped", `Machine ${nameOf(facts.machine)} is not remediated: ${reason}`);
  return reason;
}

function tell(
  pass: TargetPass,
  { machine }: TargetFacts,
  type: "Normal" | "Warning",
  reason: MachineEventReason,
  note: string,
): void {
  pass.decision.standing.push({ key: `${machine.metadata.uid}/${note}`, type, reason, note, about: machine });
}

function checkAgain({ decision }: TargetPass, atMs: number): void {
  if (decision.nextCheckMs === undefined || atMs < decision.nextCheckMs) decision.nextCheckMs = atMs;
}

function verdict(pass: TargetPass, { machine }: TargetFacts, outcome: string, reason: string): void {
  pass.decision.machines.push({ name: machine.metadata.name, outcome, reason });
}
