import {
  HEALTHY_DELAY,
  MANUALLY_CONFIRMED_HEALTHY,
  NHC_TIMED_OUT,
  OLD_REMEDIATION_CR,
} from "../../../api/annotations.ts";
import type { Node } from "../../../api/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/labels.ts";
import type { RemediationRecord, UnhealthyNode } from "../../../api/node-health-check.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { NodeFacts } from "./decision.ts";
import { TERMINATING } from "./decision.ts";
import type { NextStep } from "./escalation.ts";
import { forgetRounds, isOfStep, nextStep, reconcileRecords } from "./escalation.ts";
import type { Health, Skipped } from "./health.ts";
import type { Pass } from "./evaluation.ts";
import { announce, checkAgain, skip, verdict } from "./evaluation.ts";
import {
  clearAway,
  clearOver,
  isBudgetSpent,
  isResting,
  recordAttempts,
  remove,
  reportFailure,
  reportFailureHeld,
  reportSuccess,
  restartFailed,
} from "./retries.ts";
import type { Step } from "../../shared/model/template-reference.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { isUnderWay } from "../../shared/model/remediation.ts";
import { isControlPlane } from "../../shared/model/template.ts";

/** A CR older than this is counted in a metric, once. */
const OLD_REMEDIATION_MS = 48 * 3_600_000;
/** What a step without a time-out counts as for its lease. */
const LEASE_WITHOUT_TIMEOUT_MS = 600_000;
/** How much longer than its step a lease lasts. */
const LEASE_MARGIN_MS = 60_000;
const CONTROL_PLANE_RETRY_MS = 60_000;

/**
 * Decides for one node.
 *
 * @returns its entry in the status; undefined where there is nothing to say of it.
 */
export function planNode(pass: Pass, facts: NodeFacts): UnhealthyNode | undefined {
  const { snapshot, nowMs, decision } = pass;
  const others = decision.nextCheckMs;
  decision.nextCheckMs = undefined;
  const before = facts.previous?.remediations ?? [];
  const records = reconcileRecords(before, facts.remediations, snapshot.canSee, nowMs);
  for (const remediation of facts.remediations) watchAge(pass, remediation);
  recordAttempts(pass, facts);
  const entry = planByState(pass, facts, records);
  recordInFlight(pass, facts, entry?.remediations ?? []);
  // A lease that we asked for may be held though no CR came of it.
  const leased = before.length > 0 || facts.leaseRenewAtMs !== undefined;
  if (entry === undefined && leased) {
    decision.actions.push({ type: "releaseLease", nodeName: facts.name });
  }
  const told = decision.nodes.at(-1);
  if (told?.name === facts.name) told.nextCheckMs = decision.nextCheckMs;
  if (others !== undefined) checkAgain(pass, others);
  return entry;
}

/** Notes whether a remediation of the node is under way; one that cannot be seen now is, unless it was given up. */
function recordInFlight({ snapshot, inFlight }: Pass, facts: NodeFacts, records: readonly RemediationRecord[]): void {
  const busy = new Set(facts.remediations.filter(isUnderWay).map(({ uid }) => uid));
  const started = records
    .filter(
      (record) => busy.has(record.resource.uid ?? "") || (!snapshot.canSee(record) && record.timedOut === undefined),
    )
    .map((record) => record.started);
  const [oldest] = started.toSorted();
  if (oldest !== undefined) inFlight[facts.name] = oldest;
}

function planByState(pass: Pass, facts: NodeFacts, records: RemediationRecord[]): UnhealthyNode | undefined {
  const { node, selected, health, remediations } = facts;
  const underWay = remediations.length > 0 || records.some((record) => !pass.snapshot.canSee(record));
  if (node === undefined) return underWay ? planGone(pass, facts, records) : undefined;
  if (health.state === "healthy") return planHealthy(pass, facts, node, records, underWay);
  if (!selected) return underWay ? planRelabelled(pass, facts, records) : undefined;
  if (health.state === "soonUnhealthy") return planSoonUnhealthy(pass, facts, node, records, health);
  return planUnhealthy(pass, facts, node, records, health);
}

/** The node object is gone: for most remediators the end of their work, for some a step of it. */
function planGone(pass: Pass, facts: NodeFacts, records: RemediationRecord[]): UnhealthyNode {
  let kept = false;
  for (const remediation of facts.remediations) {
    if (remediation.nodeDeletionExpected && remediation.succeeded !== "True") kept = true;
    else remove(pass, remediation, "nodeGone");
  }
  if (kept) {
    verdict(pass, facts, "nodeDeletionExpected", "The node is gone, as its remediation said it would be");
    return entryOf(facts, giveUpOverdue(pass, facts, records));
  }
  verdict(pass, facts, "nodeGone", "The node is gone: its remediations are being deleted");
  return entryOf(facts, records);
}

/** Healthy by its conditions: after the delay, if there is one, its CRs go; it stays listed until they have. */
function planHealthy(
  pass: Pass,
  facts: NodeFacts,
  node: Node,
  records: RemediationRecord[],
  underWay: boolean,
): UnhealthyNode | undefined {
  const { snapshot, nowMs, decision } = pass;
  const { healthyDelayMs } = snapshot.policy;
  const confirmed = node.metadata.annotations?.[MANUALLY_CONFIRMED_HEALTHY] !== undefined;
  if (!underWay) {
    if (confirmed) decision.actions.push({ type: "consumeConfirmation", node });
    verdict(pass, facts, "healthy", "No condition makes it unhealthy");
    return undefined;
  }
  const conditionsHealthyTimestamp = facts.previous?.conditionsHealthyTimestamp ?? toTime(nowMs);
  const entry: UnhealthyNode = { ...entryOf(facts, records), conditionsHealthyTimestamp };
  const untilMs = healthyDelayMs < 0 ? Infinity : (parseTimeMs(conditionsHealthyTimestamp) ?? nowMs) + healthyDelayMs;
  // A CR that is going already was released before; the delay does not bring it back.
  const present = facts.remediations.filter(({ terminating }) => !terminating);
  if (!confirmed && nowMs < untilMs && present.length > 0) {
    for (const remediation of present) markDelay(pass, remediation, conditionsHealthyTimestamp);
    if (untilMs < Infinity) checkAgain(pass, untilMs);
    const until = untilMs < Infinity ? `until ${toTime(untilMs)}` : "until a person confirms its health";
    verdict(pass, facts, "healthyDelayed", `Healthy again; its remediations stay ${until}`);
    return { ...entry, healthyDelayed: true };
  }
  for (const remediation of present) remove(pass, remediation, "nodeHealthy");
  verdict(pass, facts, "recovered", "Healthy again: its remediations are being deleted");
  return entry;
}

/** Relabelled away from this health check: nothing new starts, and what is half done is not torn down. */
function planRelabelled(pass: Pass, facts: NodeFacts, records: RemediationRecord[]): UnhealthyNode {
  const updated = giveUpOverdue(pass, facts, records);
  const isOver = (remediation: Remediation) =>
    remediation.succeeded === "True" || remediation.succeeded === "False" || remediation.timedOut !== undefined;
  if (facts.remediations.every(isOver)) {
    for (const remediation of facts.remediations) remove(pass, remediation, "nodeNotSelected");
    verdict(pass, facts, "notSelected", "No longer selected, and its remediation is over: it is being deleted");
  } else {
    const reason = `Node ${facts.name} is no longer selected; its remediation runs on to its end`;
    verdict(pass, facts, "notSelected", reason);
    announce(pass, { key: `${facts.name}/notSelected`, type: "Normal", reason: "RemediationSkipped", note: reason });
  }
  return entryOf(facts, updated);
}

/** Between healthy and unhealthy: everything stays as it is, escalation too. */
function planSoonUnhealthy(
  pass: Pass,
  facts: NodeFacts,
  node: Node,
  records: RemediationRecord[],
  { untilMs, notSkipped }: Extract<Health, { state: "soonUnhealthy" }>,
): UnhealthyNode | undefined {
  checkAgain(pass, untilMs);
  warnOfSkew(pass, facts);
  const reason = `Unhealthy from ${toTime(untilMs)} on, unless its conditions change`;
  verdict(
    pass,
    facts,
    "soonUnhealthy",
    notSkipped === undefined ? reason : `${reason}; not sooner, since ${notSkipped}`,
  );
  clearDelay(pass, facts);
  const next = nextStep(pass.snapshot.policy.steps, records);
  const running = runningOf(facts, records, next);
  if (running?.terminating === false && next !== undefined) holdLease(pass, facts, node, next.step);
  return facts.previous === undefined && records.length === 0 ? undefined : entryOf(facts, records);
}

function planUnhealthy(
  pass: Pass,
  facts: NodeFacts,
  node: Node,
  records: RemediationRecord[],
  { rule, skipped }: Extract<Health, { state: "unhealthy" }>,
): UnhealthyNode {
  const { name, previous } = facts;
  if (previous === undefined) {
    const note = `Node matches unhealthy condition. Node "${name}", condition type "${rule.type}", condition status "${rule.status}"`;
    announce(pass, { key: `${name}/unhealthy`, type: "Normal", reason: "DetectedUnhealthy", note });
  }
  if (skipped !== undefined) checkAgain(pass, Math.min(skipped.untilMs, skipped.durationUntilMs));
  clearDelay(pass, facts);
  warnOfSkew(pass, facts);
  warnOfLabel(pass, node);
  const { steps } = pass.snapshot.policy;
  const updated = forgetRounds(steps, restartFailed(pass, facts, giveUpOverdue(pass, facts, records)));
  const next = nextStep(steps, updated);
  const running = runningOf(facts, updated, next);
  if (running?.succeeded === "False" && !running.terminating) {
    reportFailure(pass, facts, updated, running);
  } else if (running !== undefined && !running.terminating && next !== undefined) {
    holdLease(pass, facts, node, next.step);
    if (running.succeeded === "True") reportSuccess(pass, facts, running);
    else verdict(pass, facts, "remediating", `${running.object.kind} ${running.object.metadata.name} is under way`);
  } else if (running !== undefined) {
    // A relapse while the CR of the recovery before is still being undone. The next one starts from nothing.
    verdict(pass, facts, "waiting", "Its last remediation is still being deleted");
  } else {
    start(pass, facts, node, next, skipped);
  }
  return entryOf(facts, updated);
}

/** The remediation of the step that is being tried. */
function runningOf(
  facts: NodeFacts,
  records: readonly RemediationRecord[],
  next: NextStep | undefined,
): Remediation | undefined {
  const isOpen = (record: RemediationRecord): boolean =>
    next !== undefined && record.timedOut === undefined && isOfStep(next.step, record);
  return facts.remediations.find(({ uid }) => records.some((record) => record.resource.uid === uid && isOpen(record)));
}

/** Starts a step, or says why not. */
function start(
  pass: Pass,
  facts: NodeFacts,
  node: Node,
  next: NextStep | undefined,
  skipped: Skipped | undefined,
): void {
  const { snapshot, nowMs, decision, gate, controlPlaneBusy } = pass;
  const { name, rival, hold } = facts;
  if (gate !== undefined) {
    if (next !== undefined) reportFailureHeld(pass, facts, next, gate);
    return verdict(pass, facts, gate.outcome, gate.reason);
  }
  if (node.metadata.labels?.[EXCLUDE_FROM_REMEDIATION] === "true") {
    return skip(
      pass,
      facts,
      "excluded",
      `Remediation skipped on node ${name}: node has Exclude from Remediation label`,
    );
  }
  const isTerminating = node.status.conditions?.some(({ type }) => type === TERMINATING) === true;
  if (isTerminating && snapshot.platform.hasTerminationHandler) {
    const reason = `Skipped remediation of node ${name}: its cloud terminates it, which OKD's own health check sees to`;
    return skip(pass, facts, "terminating", reason);
  }
  if (rival !== undefined) return skip(pass, facts, "rival", `Skipped remediation of node ${name}: ${rival}`);
  if (next === undefined || isResting(pass, facts, next)) return undefined;
  if (isBudgetSpent(pass, facts)) return undefined;
  if (next.restartAtMs !== undefined && clearAway(pass, facts)) return undefined;
  const { step } = next;
  const template = "reason" in snapshot.templates ? undefined : snapshot.templates.get(step);
  if (template === undefined) return verdict(pass, facts, "disabled", "Its template is not there");
  if (!template.manyPerNode) {
    const { kind } = template.type;
    if (snapshot.isForeign(template, name)) {
      const reason = `Skipped remediation of node ${name}: a ${kind} of that name exists, and this health check does not own it`;
      return skip(pass, facts, "foreign", reason);
    }
    const left = facts.remediations.find(({ object }) => object.kind === kind && object.metadata.name === name);
    if (left !== undefined) {
      clearOver(pass, facts, left);
      return verdict(pass, facts, "waiting", `An earlier ${kind} of that name has to go first`);
    }
  }
  if (isControlPlane(node) && [...controlPlaneBusy].some((busy) => busy !== name)) {
    checkAgain(pass, nowMs + CONTROL_PLANE_RETRY_MS);
    const reason = `Skipping remediation of ${name} for preventing control plane / etcd quorum loss, going to retry in a minute`;
    return skip(pass, facts, "controlPlane", reason);
  }
  if (hold !== undefined && nowMs < hold.untilMs) {
    checkAgain(pass, hold.untilMs);
    const reason = `Skipped remediation of node ${name}: ${hold.reason}`;
    return hold.cause === "staleView" ? verdict(pass, facts, "held", reason) : skip(pass, facts, "held", reason);
  }
  if (isControlPlane(node)) controlPlaneBusy.add(name);
  decision.actions.push({ type: "create", node, template, leaseDurationMs: leaseDurationMs(step), skipped });
  const why = skipped === undefined ? "" : `, before its duration is over: ${skipped.proof}`;
  verdict(pass, facts, "create", `A ${template.type.kind} is created from ${template.name}${why}`);
}

/**
 * Gives up the attempts whose time is over or that failed, so that the next step may start. This goes on below the
 * threshold and while paused: an attempt's time does not stand still.
 *
 * An attempt counts as given up once its CR says so; until then the mark is tried again.
 */
function giveUpOverdue(pass: Pass, facts: NodeFacts, records: RemediationRecord[]): RemediationRecord[] {
  const { snapshot, nowMs, decision } = pass;
  return records.map((record) => {
    if (record.timedOut !== undefined) return record;
    const remediation = facts.remediations.find(({ uid }) => uid === record.resource.uid);
    const step = snapshot.policy.steps.find((candidate) => isOfStep(candidate, record));
    if (remediation === undefined || remediation.terminating || step?.timeoutMs === undefined) return record;
    const dueMs = (parseTimeMs(record.started) ?? nowMs) + step.timeoutMs;
    if (nowMs < dueMs && remediation.succeeded !== "False") {
      checkAgain(pass, dueMs);
      return record;
    }
    const timedOut = toTime(nowMs);
    if (remediation.succeeded === "True") return { ...record, timedOut };
    decision.actions.push({ type: "annotate", remediation, annotation: NHC_TIMED_OUT, value: timedOut });
    return record;
  });
}

function holdLease(pass: Pass, facts: NodeFacts, node: Node, step: Step): void {
  const { nowMs, decision } = pass;
  const renewAtMs = facts.leaseRenewAtMs ?? nowMs;
  if (nowMs < renewAtMs) return checkAgain(pass, renewAtMs);
  decision.actions.push({ type: "renewLease", node, leaseDurationMs: leaseDurationMs(step) });
}

/** When a lease of this duration wants to be renewed, counted from its last renewal. */
export function renewLeaseAfterMs(durationMs: number): number {
  return durationMs - LEASE_MARGIN_MS;
}

function leaseDurationMs(step: Step): number {
  return (step.timeoutMs ?? LEASE_WITHOUT_TIMEOUT_MS) + LEASE_MARGIN_MS;
}

function watchAge(pass: Pass, remediation: Remediation): void {
  const { object, createdMs } = remediation;
  if (createdMs === undefined || object.metadata.annotations?.[OLD_REMEDIATION_CR] !== undefined) return;
  const oldMs = createdMs + OLD_REMEDIATION_MS;
  if (pass.nowMs < oldMs) return checkAgain(pass, oldMs);
  pass.decision.actions.push({ type: "annotate", remediation, annotation: OLD_REMEDIATION_CR, value: "flagon" });
}

function markDelay(pass: Pass, remediation: Remediation, since: string): void {
  const { healthyDelayMs } = pass.snapshot.policy;
  if (healthyDelayMs <= 0 || remediation.object.metadata.annotations?.[HEALTHY_DELAY] === since) return;
  pass.decision.actions.push({ type: "annotate", remediation, annotation: HEALTHY_DELAY, value: since });
}

// A relapse ends the delay: it starts anew with the next recovery.
function clearDelay(pass: Pass, facts: NodeFacts): void {
  for (const remediation of facts.remediations) {
    if (remediation.object.metadata.annotations?.[HEALTHY_DELAY] === undefined || remediation.terminating) continue;
    pass.decision.actions.push({ type: "annotate", remediation, annotation: HEALTHY_DELAY, value: undefined });
  }
}

function warnOfSkew(pass: Pass, { name, skew }: NodeFacts): void {
  if (skew !== undefined) announce(pass, { key: `${name}/skew`, type: "Warning", reason: "ClockSkew", note: skew });
}

function warnOfLabel(pass: Pass, node: Node): void {
  const { name, labels } = node.metadata;
  if (labels?.[EXCLUDE_FROM_REMEDIATION] !== "") return;
  const note = `Node ${name} has exclude-from-remediation label with empty value, label will be ignored. Set value to 'true' to exclude node from remediation`;
  announce(pass, { key: `${name}/label`, type: "Warning", reason: "InvalidNodeLabel", note });
}

function entryOf(facts: NodeFacts, records: readonly RemediationRecord[]): UnhealthyNode {
  return { name: facts.name, ...(records.length > 0 && { remediations: [...records] }) };
}
