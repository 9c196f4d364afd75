import {
  HEALTHY_DELAY,
  MANUALLY_CONFIRMED_HEALTHY,
  NHC_TIMED_OUT,
  OLD_REMEDIATION_CR,
} from "../../../api/names/annotations.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/names/labels.ts";
import type { RemediationRecord, UnhealthyNode } from "../../../api/ironfence/node-health-check.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { NodeFacts } from "./decision.ts";
import type { NextStep } from "./escalation.ts";
import { forgetRounds, isOfStep, nextStep, reconcileRecords, isUnseen } from "./escalation.ts";
import type { NodeHealth } from "./health.ts";
import type { NodeCheckEvaluation } from "./evaluation.ts";
import { checkAgain } from "../../shared/model/health-check-decision.ts";
import { announceNode, concludeNode } from "./evaluation.ts";
import { holdLease } from "./lease.ts";
import { recordAttempts, remove, reportFailure, reportSuccess, restartFailed } from "./retries.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { isInProgress } from "../../shared/model/remediation.ts";
import { startStep } from "./start-step.ts";

/** A CR that is older than this is counted once in a metric. */
const OLD_REMEDIATION_MS = 48 * 3_600_000;

/**
 * Decides for one node.
 *
 * @returns the entry of the node in the status; undefined if it needs none.
 */
export function decideNode(evaluation: NodeCheckEvaluation, facts: NodeFacts): UnhealthyNode | undefined {
  const { snapshot, nowMs, decision } = evaluation;
  const others = decision.nextCheckMs;
  decision.nextCheckMs = undefined;
  const before = facts.previous?.remediations ?? [];
  const records = reconcileRecords(before, facts.remediations, snapshot.unseenKinds, nowMs);
  for (const remediation of facts.remediations) watchAge(evaluation, remediation);
  recordAttempts(evaluation, facts);
  const entry = decideByState(evaluation, facts, records);
  recordInFlight(evaluation, facts, entry?.remediations ?? []);
  // The agent may hold a remediation lease for which it created no CR.
  const leased = before.length > 0 || facts.leaseRenewAtMs !== undefined;
  if (entry === undefined && leased) {
    decision.actions.push({ type: "releaseLease", nodeName: facts.name });
  }
  const last = decision.nodes.at(-1);
  if (last?.name === facts.name) last.nextCheckMs = decision.nextCheckMs;
  if (others !== undefined) checkAgain(evaluation, others);
  return entry;
}

/**
 * Records whether a remediation of the node is in progress. If its kind cannot be watched now, it counts as in
 * progress, unless the health check has given up on it.
 */
function recordInFlight(
  { snapshot, inFlight }: NodeCheckEvaluation,
  facts: NodeFacts,
  records: readonly RemediationRecord[],
): void {
  if (records.length === 0) return;
  const busy = new Set(facts.remediations.filter(isInProgress).map(({ uid }) => uid));
  const started = records
    .filter(
      (record) =>
        busy.has(record.resource.uid ?? "") ||
        (isUnseen(record, snapshot.unseenKinds) && record.timedOut === undefined),
    )
    .map((record) => record.started);
  const [oldest] = started.toSorted();
  if (oldest !== undefined) inFlight[facts.name] = oldest;
}

function decideByState(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  records: RemediationRecord[],
): UnhealthyNode | undefined {
  const { node, selected, health, remediations } = facts;
  const underWay =
    remediations.length > 0 || records.some((record) => isUnseen(record, evaluation.snapshot.unseenKinds));
  if (node === undefined) return underWay ? decideGone(evaluation, facts, records) : undefined;
  if (health.state === "healthy") return decideHealthy(evaluation, facts, node, records, underWay);
  if (!selected) return underWay ? decideDeselected(evaluation, facts, records) : undefined;
  if (health.state === "soonUnhealthy") return decideSoonUnhealthy(evaluation, facts, node, records, health);
  return decideUnhealthy(evaluation, facts, node, records, health);
}

/**
 * The Node was deleted. Most remediators have nothing more to do then, but some delete the Node as one of their steps.
 */
function decideGone(evaluation: NodeCheckEvaluation, facts: NodeFacts, records: RemediationRecord[]): UnhealthyNode {
  let kept = false;
  for (const remediation of facts.remediations) {
    if (remediation.nodeDeletionExpected && remediation.succeeded !== "True") kept = true;
    else remove(evaluation, remediation, "nodeGone");
  }
  if (kept) {
    concludeNode(evaluation, facts, "nodeDeletionExpected", "The Node was deleted, as its remediation announced");
    return entryOf(facts, giveUpOverdue(evaluation, facts, records));
  }
  concludeNode(evaluation, facts, "nodeGone", "The Node was deleted: its remediations are being deleted");
  return entryOf(facts, records);
}

/**
 * The node is healthy by its conditions. Its CRs are deleted after the healthy delay. Until they are deleted, its entry
 * stays in the status.
 */
function decideHealthy(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  node: Node,
  records: RemediationRecord[],
  underWay: boolean,
): UnhealthyNode | undefined {
  const { snapshot, nowMs, decision } = evaluation;
  const { healthyDelayMs } = snapshot.policy;
  const confirmed = node.metadata.annotations?.[MANUALLY_CONFIRMED_HEALTHY] !== undefined;
  if (!underWay) {
    if (confirmed) decision.actions.push({ type: "consumeConfirmation", node });
    concludeNode(evaluation, facts, "healthy", "No condition makes it unhealthy");
    return undefined;
  }
  const conditionsHealthyTimestamp = facts.previous?.conditionsHealthyTimestamp ?? toTime(nowMs);
  const entry: UnhealthyNode = { ...entryOf(facts, records), conditionsHealthyTimestamp };
  const untilMs = healthyDelayMs < 0 ? Infinity : (parseTimeMs(conditionsHealthyTimestamp) ?? nowMs) + healthyDelayMs;
  // A CR that is terminating was already deleted, so the delay does not apply to it.
  const present = facts.remediations.filter(({ terminating }) => !terminating);
  if (!confirmed && nowMs < untilMs && present.length > 0) {
    for (const remediation of present) markDelay(evaluation, remediation, conditionsHealthyTimestamp);
    if (untilMs < Infinity) checkAgain(evaluation, untilMs);
    const until = untilMs < Infinity ? `until ${toTime(untilMs)}` : "until the operator confirms its health";
    concludeNode(evaluation, facts, "healthyDelayed", `Healthy again; its remediations stay ${until}`);
    return { ...entry, healthyDelayed: true };
  }
  for (const remediation of present) remove(evaluation, remediation, "nodeHealthy");
  concludeNode(evaluation, facts, "recovered", "Healthy again: its remediations are being deleted");
  return entry;
}

/**
 * The labels of the node changed, and this health check no longer selects it. No new remediation starts, and a
 * remediation in progress is not deleted.
 */
function decideDeselected(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  records: RemediationRecord[],
): UnhealthyNode {
  const updated = giveUpOverdue(evaluation, facts, records);
  const isOver = (remediation: Remediation) =>
    remediation.succeeded === "True" || remediation.succeeded === "False" || remediation.timedOut !== undefined;
  if (facts.remediations.every(isOver)) {
    for (const remediation of facts.remediations) remove(evaluation, remediation, "nodeNotSelected");
    concludeNode(
      evaluation,
      facts,
      "notSelected",
      "No longer selected, and its remediation has finished and is being deleted",
    );
  } else {
    const reason = `Node ${facts.name} is no longer selected; its remediation continues until it finishes`;
    concludeNode(evaluation, facts, "notSelected", reason);
    announceNode(evaluation, {
      key: `${facts.name}/notSelected`,
      type: "Normal",
      reason: "RemediationSkipped",
      note: reason,
    });
  }
  return entryOf(facts, updated);
}

/** The node is neither healthy nor unhealthy. Everything stays as it is, including the escalation. */
function decideSoonUnhealthy(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  node: Node,
  records: RemediationRecord[],
  { untilMs, notSkipped }: Extract<NodeHealth, { state: "soonUnhealthy" }>,
): UnhealthyNode | undefined {
  checkAgain(evaluation, untilMs);
  warnOfSkew(evaluation, facts);
  const reason = `Unhealthy at ${toTime(untilMs)} unless its conditions change`;
  concludeNode(
    evaluation,
    facts,
    "soonUnhealthy",
    notSkipped === undefined ? reason : `${reason}; not earlier, because ${notSkipped}`,
  );
  clearDelay(evaluation, facts);
  const next = nextStep(evaluation.snapshot.policy.steps, records);
  const running = runningOf(facts, records, next);
  if (running?.terminating === false && next !== undefined) holdLease(evaluation, facts, node, next.step);
  return facts.previous === undefined && records.length === 0 ? undefined : entryOf(facts, records);
}

function decideUnhealthy(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  node: Node,
  records: RemediationRecord[],
  health: Extract<NodeHealth, { state: "unhealthy" }>,
): UnhealthyNode {
  const { unhealthyCondition, skipped } = health;
  const { name, previous } = facts;
  if (previous === undefined) {
    const note = `Node matches unhealthy condition. Node "${name}", condition type "${unhealthyCondition.type}", condition status "${unhealthyCondition.status}"`;
    announceNode(evaluation, { key: `${name}/unhealthy`, type: "Normal", reason: "DetectedUnhealthy", note });
  }
  if (skipped !== undefined) checkAgain(evaluation, Math.min(skipped.untilMs, skipped.durationUntilMs));
  clearDelay(evaluation, facts);
  warnOfSkew(evaluation, facts);
  warnOfLabel(evaluation, node);
  const { steps } = evaluation.snapshot.policy;
  const updated = forgetRounds(steps, restartFailed(evaluation, facts, giveUpOverdue(evaluation, facts, records)));
  const next = nextStep(steps, updated);
  const running = runningOf(facts, updated, next);
  if (running?.succeeded === "False" && !running.terminating) {
    reportFailure(evaluation, facts, updated, running);
  } else if (running !== undefined && !running.terminating && next !== undefined) {
    holdLease(evaluation, facts, node, next.step);
    if (running.succeeded === "True") reportSuccess(evaluation, facts, running);
    else
      concludeNode(
        evaluation,
        facts,
        "remediating",
        `${running.object.kind} ${running.object.metadata.name} is in progress`,
      );
  } else if (running !== undefined) {
    // The node failed again while the CR of the previous outage is being undone. The next remediation starts with the
    // first step.
    concludeNode(evaluation, facts, "waiting", "Its last remediation is still being deleted");
  } else {
    startStep(evaluation, facts, node, next, health);
  }
  return entryOf(facts, updated);
}

/** The remediation of the current step. */
function runningOf(
  facts: NodeFacts,
  records: readonly RemediationRecord[],
  next: NextStep | undefined,
): Remediation | undefined {
  const isOpen = (record: RemediationRecord): boolean =>
    next !== undefined && record.timedOut === undefined && isOfStep(next.step, record);
  return facts.remediations.find(({ uid }) => records.some((record) => record.resource.uid === uid && isOpen(record)));
}

/**
 * Gives up on attempts that timed out or failed, so that the next step may start. This also happens while no new
 * remediation may start, because the timeout of an attempt continues then.
 *
 * An attempt counts as given up when its CR has the annotation. Until then, each evaluation tries to set the
 * annotation.
 */
function giveUpOverdue(
  evaluation: NodeCheckEvaluation,
  facts: NodeFacts,
  records: RemediationRecord[],
): RemediationRecord[] {
  const { snapshot, nowMs, decision } = evaluation;
  return records.map((record) => {
    if (record.timedOut !== undefined) return record;
    const remediation = facts.remediations.find(({ uid }) => uid === record.resource.uid);
    const step = snapshot.policy.steps.find((candidate) => isOfStep(candidate, record));
    if (remediation === undefined || remediation.terminating || step?.timeoutMs === undefined) return record;
    // The timeout of an early remediation starts when the duration is over, because the host is not powered on before.
    const startedMs = Math.max(parseTimeMs(record.started) ?? nowMs, remediation.powerOnNotBeforeMs ?? -Infinity);
    const dueMs = startedMs + step.timeoutMs;
    if (nowMs < dueMs && remediation.succeeded !== "False") {
      checkAgain(evaluation, dueMs);
      return record;
    }
    const timedOut = toTime(nowMs);
    if (remediation.succeeded === "True") return { ...record, timedOut };
    decision.actions.push({ type: "annotate", remediation, annotation: NHC_TIMED_OUT, value: timedOut });
    return record;
  });
}

function watchAge(evaluation: NodeCheckEvaluation, remediation: Remediation): void {
  const { object, createdMs } = remediation;
  if (createdMs === undefined || object.metadata.annotations?.[OLD_REMEDIATION_CR] !== undefined) return;
  const oldMs = createdMs + OLD_REMEDIATION_MS;
  if (evaluation.nowMs < oldMs) return checkAgain(evaluation, oldMs);
  evaluation.decision.actions.push({ type: "annotate", remediation, annotation: OLD_REMEDIATION_CR, value: "flagon" });
}

function markDelay(evaluation: NodeCheckEvaluation, remediation: Remediation, since: string): void {
  const { healthyDelayMs } = evaluation.snapshot.policy;
  if (healthyDelayMs <= 0 || remediation.object.metadata.annotations?.[HEALTHY_DELAY] === since) return;
  evaluation.decision.actions.push({ type: "annotate", remediation, annotation: HEALTHY_DELAY, value: since });
}

// If the node fails again, the delay ends. It starts again with the next recovery.
function clearDelay(evaluation: NodeCheckEvaluation, facts: NodeFacts): void {
  for (const remediation of facts.remediations) {
    if (remediation.object.metadata.annotations?.[HEALTHY_DELAY] === undefined || remediation.terminating) continue;
    evaluation.decision.actions.push({ type: "annotate", remediation, annotation: HEALTHY_DELAY, value: undefined });
  }
}

function warnOfSkew(evaluation: NodeCheckEvaluation, { name, skew }: NodeFacts): void {
  if (skew !== undefined)
    announceNode(evaluation, { key: `${name}/skew`, type: "Warning", reason: "ClockSkew", note: skew });
}

function warnOfLabel(evaluation: NodeCheckEvaluation, node: Node): void {
  const { name, labels } = node.metadata;
  if (labels?.[EXCLUDE_FROM_REMEDIATION] !== "") return;
  const note = `Node ${name} has exclude-from-remediation label with empty value, label will be ignored. Set value to 'true' to exclude node from remediation`;
  announceNode(evaluation, { key: `${name}/label`, type: "Warning", reason: "InvalidNodeLabel", note });
}

function entryOf(facts: NodeFacts, records: readonly RemediationRecord[]): UnhealthyNode {
  return { name: facts.name, ...(records.length > 0 && { remediations: [...records] }) };
}
