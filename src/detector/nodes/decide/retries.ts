import type { RemediationRecord } from "../../../api/ironfence/node-health-check.ts";
import { nameOf } from "../../../kube/watched.ts";
import { toTime } from "../../../runtime/time.ts";
import { attemptAllowedAtMs, countAttempts, mustRecord } from "../../shared/model/attempts.ts";
import type { DeletionReason, NodeFacts } from "./decision.ts";
import type { NextStep } from "./escalation.ts";
import { isOfAnyStep, isOfStep, nextStep, restartWaitMs } from "./escalation.ts";
import type { NodeCheckGate, NodeCheckEvaluation } from "./evaluation.ts";
import { checkAgain } from "../../shared/model/health-check-decision.ts";
import { announceNode, skipNode, concludeNode } from "./evaluation.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { hasEnded } from "../../shared/model/remediation.ts";

// How often a node is remediated: its attempt budget, and the rounds of its steps.

/** How soon a node that waits until its failed round is stored is evaluated again. */
const RECORD_WAIT_MS = 1_000;

/** Whether every step has failed and the next round does not start now. If so, it also reports the failure. */
export function waitsForNextRound(evaluation: NodeCheckEvaluation, facts: NodeFacts, next: NextStep): boolean {
  const { nowMs, snapshot } = evaluation;
  const { failedMs, restartAtMs: dueMs } = next;
  if (dueMs === undefined || failedMs === undefined) return false;
  const restartAtMs = Math.min(dueMs, fixedMs(facts, failedMs));
  if (snapshot.policy.restartsSteps && restartAtMs <= nowMs) return false;
  const { name } = facts;
  const note = `Remediation timed out, and no template left to try for node ${name}`;
  announceNode(evaluation, { key: `${name}/noTemplateLeft`, type: "Warning", reason: "NoTemplateLeft", note });
  if (snapshot.policy.restartsSteps) checkAgain(evaluation, restartAtMs);
  const until = snapshot.policy.restartsSteps ? `; the first template is tried again at ${toTime(restartAtMs)}` : "";
  const reason = `${note}${until}. To try again now: ironfence fence --node ${name}`;
  evaluation.failed.push({ name, reason });
  concludeNode(evaluation, facts, "noTemplateLeft", reason);
  return true;
}

/**
 * When the cause of a failed remediation was fixed: when the FencingTarget became Ready again after the failure.
 * Infinity if it did not.
 */
function fixedMs({ fenceableSinceMs = -Infinity }: NodeFacts, failedMs: number): number {
  return fenceableSinceMs > failedMs ? fenceableSinceMs : Infinity;
}

/** Whether the attempt budget of the node is used up. If so, it also reports that. */
export function isBudgetSpent(evaluation: NodeCheckEvaluation, facts: NodeFacts): boolean {
  const { attemptBudget } = evaluation.snapshot.policy;
  const remembered = [...facts.attempts, ...facts.attemptsOfOthers];
  const attempts = countAttempts(remembered, facts.remediations, evaluation.nowMs);
  const allowedMs = attemptAllowedAtMs(attemptBudget, attempts);
  if (allowedMs <= evaluation.nowMs) return false;
  checkAgain(evaluation, allowedMs);
  evaluation.budgetSpent.push(facts.name);
  const times = `${attemptBudget.max} times in ${attemptBudget.windowMs / 60_000} minutes`;
  const reason = `Giving up on node ${facts.name} until ${toTime(allowedMs)} unless the operator intervenes: it was remediated ${times} and is still unhealthy`;
  skipNode(evaluation, facts, "budgetSpent", reason);
  return true;
}

/**
 * Deletes the remediations of the failed round, because those of the next round have the same names.
 *
 * @returns whether any still exists.
 */
export function deleteFailedRound(evaluation: NodeCheckEvaluation, facts: NodeFacts): boolean {
  if (facts.remediations.length === 0) return false;
  for (const remediation of facts.remediations) deleteFinished(evaluation, facts, remediation);
  concludeNode(
    evaluation,
    facts,
    "waiting",
    "Every step has failed; the first one is tried again when their remediations are deleted",
  );
  return true;
}

/**
 * Deletes a remediation that has ended. The status must record the failure first. Otherwise the attempt would be lost
 * with the CR, and the next wait would not be longer. If the spec no longer has the template of the remediation,
 * nothing needs to be recorded, because the remediation belongs to no step.
 */
export function deleteFinished(evaluation: NodeCheckEvaluation, facts: NodeFacts, remediation: Remediation): void {
  if (!hasEnded(remediation)) return;
  const stored = facts.previous?.remediations ?? [];
  const isStored = stored.some(({ resource, timedOut }) => resource.uid === remediation.uid && timedOut !== undefined);
  const isLeftover = !isOfAnyStep(evaluation.snapshot.policy.steps, remediation);
  if (isStored || isLeftover) remove(evaluation, remediation, "restarted");
  else checkAgain(evaluation, evaluation.nowMs + RECORD_WAIT_MS);
}

/** Reports that the only step of a health check without escalation has failed, why, and when it is tried again. */
export function reportFailure(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  records: readonly RemediationRecord[],
  remediation: Remediation,
): void {
  const { object, failure = "no reason given" } = remediation;
  const { restartMs } = retryOf(evaluation, facts, records, remediation);
  const byHand = `To try again now, delete it: ${deletionOf(object)}`;
  let next = `No retry is scheduled. ${byHand}`;
  if (evaluation.snapshot.policy.restartsSteps) {
    const isHeld = evaluation.gate !== undefined && restartMs <= evaluation.nowMs;
    next = isHeld ? notNow(evaluation.gate) : `The next try starts at ${toTime(restartMs)}. ${byHand}`;
  }
  const reason = `${object.kind} ${nameOf(object)} has failed (${failure}). ${next}`;
  evaluation.failed.push({ name: facts.name, reason });
  announceNode(evaluation, { key: `${facts.name}/failed`, type: "Warning", reason: "RemediationFailed", note: reason });
  concludeNode(evaluation, facts, "failed", reason);
}

/** Reports the failure of a node whose steps have all failed, also while no new remediation may start. */
export function reportFailureHeld(
  evaluation: NodeCheckEvaluation,
  { name }: NodeFacts,
  { failedMs }: NextStep,
  gate: NodeCheckGate,
): void {
  if (failedMs !== undefined) evaluation.failed.push({ name, reason: `Every step has failed. ${notNow(gate)}` });
}

/** Reports that a remediation has succeeded, but its node is still unhealthy. */
export function reportSuccess(evaluation: NodeCheckEvaluation, facts: NodeFacts, { object }: Remediation): void {
  const found = `${object.kind} ${nameOf(object)} has succeeded, but this health check still finds the node unhealthy`;
  concludeNode(evaluation, facts, "succeeded", `${found}. To try again, delete it: ${deletionOf(object)}`);
}

function notNow({ reason }: NodeCheckGate): string {
  return `No retry starts now: ${reason}`;
}

/** The command that deletes the remediation. */
function deletionOf({ kind, metadata: { namespace, name } }: Remediation["object"]): string {
  return `kubectl delete ${kind.toLowerCase()} ${name}${namespace === undefined ? "" : ` -n ${namespace}`}`;
}

/**
 * Counts the only step of a health check without escalation as failed when the wait after its failure is over. Such a
 * step has no timeout, so nothing else gives up on it. While no remediation may start, the failed one stays, and the
 * condition reports it.
 */
export function restartFailed(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  records: RemediationRecord[],
): RemediationRecord[] {
  const { policy } = evaluation.snapshot;
  const [step] = policy.steps;
  if (!policy.restartsSteps || step === undefined || step.timeoutMs !== undefined) return records;
  return records.map((record) => {
    const remediation = facts.remediations.find(({ uid }) => uid === record.resource.uid);
    if (record.timedOut !== undefined || !isOfStep(step, record)) return record;
    if (remediation?.succeeded !== "False" || remediation.terminating) return record;
    const { failedMs, restartMs } = retryOf(evaluation, facts, records, remediation);
    if (restartMs <= evaluation.nowMs && evaluation.gate === undefined)
      return { ...record, timedOut: toTime(failedMs) };
    if (restartMs > evaluation.nowMs) checkAgain(evaluation, restartMs);
    return record;
  });
}

/** When a remediation of the only step failed, and when the step is tried again. */
function retryOf(
  { snapshot, nowMs }: NodeCheckEvaluation,
  facts: NodeFacts,
  records: readonly RemediationRecord[],
  { succeededSinceMs, createdMs }: Remediation,
): { failedMs: number; restartMs: number } {
  const { rounds = 0 } = nextStep(snapshot.policy.steps, records) ?? {};
  const failedMs = succeededSinceMs ?? createdMs ?? nowMs;
  return { failedMs, restartMs: Math.min(failedMs + restartWaitMs(rounds + 1), fixedMs(facts, failedMs)) };
}

/** Records the attempts if they have changed. */
export function recordAttempts(
  evaluation: NodeCheckEvaluation,
  { name, remediations, attempts: remembered }: NodeFacts,
): void {
  const attempts = countAttempts(remembered, remediations, evaluation.nowMs);
  if (!mustRecord(remembered, remediations, attempts)) return;
  evaluation.decision.actions.push({ type: "recordAttempts", key: name, attempts });
}

/** Deletes a remediation if its attempt is recorded. */
export function remove(evaluation: NodeCheckEvaluation, remediation: Remediation, because: DeletionReason): void {
  const { actions } = evaluation.decision;
  // An attempt must be recorded before its remediation is deleted, because until then the remediation is the only
  // record of it.
  const isUnrecorded =
    !evaluation.snapshot.isHistoryFull &&
    actions.some((action) => action.type === "recordAttempts" && action.key === remediation.nodeName);
  if (!remediation.terminating && !isUnrecorded) actions.push({ type: "delete", remediation, because });
}
