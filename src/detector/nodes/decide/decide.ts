import { CURRENT_CONFIG, DESIRED_CONFIG } from "../../../api/names/annotations.ts";
import { INFRASTRUCTURE_GROUP } from "../../../api/metal3/metal3.ts";
import { METAL3_REMEDIATION_KIND } from "../../../api/metal3/metal3-remediation.ts";
import type { NodeHealthCheckStatus, UnhealthyNode } from "../../../api/ironfence/node-health-check.ts";
import type { ThresholdJudgment, NodeCounts } from "./threshold.ts";
import { chooseCounts, judgeThreshold, countNodes, withoutOverdue } from "./threshold.ts";
import type { NodeAnnouncement, NodeCheckDecision, NodeFacts, NodeCheckSnapshot } from "./decision.ts";
import { judgeEarly, mayBeginEarly } from "./early.ts";
import type { NodeHealth } from "./health.ts";
import { isOfAnyStep } from "./escalation.ts";
import type { NodeCheckGate, NodeCheckEvaluation } from "./evaluation.ts";
import { checkAgain } from "../../shared/model/health-check-decision.ts";
import { decideNode } from "./decide-node.ts";
import { skipDuration } from "./skip-duration.ts";
import type { Disabled } from "./status.ts";
import { composeStatus, disabledNote, readDisabled, readStorm } from "./status.ts";
import type { Template } from "../../shared/model/template.ts";
import type { Storm } from "./storm.ts";
import { judgeStorm } from "./storm.ts";

const DISABLED_RETRY_MS = 15_000;
/**
 * How soon nodes are counted again after a live list showed too few healthy ones. The watch may not report a further
 * change.
 */
const RECOUNT_MS = 5_000;

/**
 * Decides what one health check does now. It does no I/O and reads no clock, so the same snapshot and time give the
 * same decision in the agent and in `ironfence explain`.
 *
 * No more remediations start than the threshold allows, because every node that has a remediation or gets one counts as
 * not healthy.
 */
export function decideNodeCheck(given: NodeCheckSnapshot, nowMs: number): NodeCheckDecision {
  const { policy, status: previous } = given;
  const nodes = given.nodes.map((facts) => ({ ...facts, health: judgeWithProofs(given, facts, nowMs) }));
  const snapshot = { ...given, nodes };
  const watchedCounts = countNodes(snapshot.selectedNodes, snapshot.nodes);
  const counts = chooseCounts(policy.threshold, watchedCounts, snapshot.liveCounts);
  const allowance = judgeThreshold(policy.threshold, counts);
  const storm = judgeStorm(readStorm(previous), policy.stormCooldownMs, allowance.isMet, nowMs);
  const disabled =
    "reason" in snapshot.templates ? snapshot.templates : (findTemplateWithoutMachine(snapshot) ?? findEdit(snapshot));
  const gate = findGate(snapshot, { counts, allowance, storm, disabled });
  const evaluation: NodeCheckEvaluation = {
    snapshot,
    nowMs,
    gate,
    controlPlaneBusy: new Set(snapshot.controlPlaneBusy),
    budgetSpent: [],
    inFlight: {},
    failed: [],
    decision: { actions: [], nextCheckMs: undefined, transitions: [], standing: [], nodes: [] },
  };
  const entries = longestUnhealthyFirst(snapshot.nodes).flatMap((facts) => decideNode(evaluation, facts) ?? []);
  const { decision } = evaluation;
  if (gate?.announcement !== undefined && entries.length > 0) decision.standing.push(gate.announcement);
  if (snapshot.clockSkew !== undefined) {
    decision.standing.push({ key: "skew", type: "Warning", reason: "ClockSkew", note: snapshot.clockSkew });
  }
  if (snapshot.hostProblem !== undefined) {
    const note = `Durations are not skipped, even for hosts that are off: ${snapshot.hostProblem}`;
    decision.standing.push({ key: "host", type: "Warning", reason: "OffProofUnavailable", note });
  }
  if (counts !== watchedCounts) checkAgain(evaluation, nowMs + RECOUNT_MS);
  if (disabled !== undefined) checkAgain(evaluation, nowMs + DISABLED_RETRY_MS);
  if (storm.state === "cooldown") checkAgain(evaluation, storm.sinceMs + (policy.stormCooldownMs ?? 0));
  const status = composeStatus(
    {
      previous,
      generation: snapshot.generation,
      // The outcomes `disabled` and `paused` have their own phases.
      gateReason: gate?.outcome === "disabled" || gate?.outcome === "paused" ? undefined : gate?.reason,
      counts: { observedNodes: counts.selected, healthyNodes: counts.healthy },
      unhealthyNodes: inStatusOrder(entries, previous),
      inFlight: evaluation.inFlight,
      failed: evaluation.failed,
      disabled,
      storm,
      budgetSpent: evaluation.budgetSpent,
      stormGuard: policy.stormCooldownMs !== undefined,
      pauseRequests: policy.pauseRequests,
    },
    nowMs,
  );
  decision.transitions.push(...enablement(previous, status), ...stormTransitions(readStorm(previous), storm));
  return { ...decision, gate, status };
}

/**
 * The health of a node with off proofs taken into account. No remediation begins early if the threshold would not be
 * met without the nodes whose renewals are overdue, because these nodes may soon be NotReady.
 */
function judgeWithProofs(snapshot: NodeCheckSnapshot, facts: NodeFacts, nowMs: number): NodeHealth {
  const { policy, templates } = snapshot;
  const health = skipDuration(facts, policy, nowMs);
  const early = judgeEarly({ ...facts, health }, policy, nowMs);
  if (early.state !== "unhealthy" || health.state === "unhealthy") return early;
  const template = "reason" in templates ? undefined : templates[0];
  const isFirst = (facts.previous?.remediations ?? []).length === 0;
  const isMet = isMetWithoutOverdue(snapshot);
  return template !== undefined && mayBeginEarly(template) && facts.selected && isFirst && isMet ? early : health;
}

function isMetWithoutOverdue({ policy, selectedNodes, nodes, liveCounts, overdueNodes }: NodeCheckSnapshot): boolean {
  const counts = chooseCounts(policy.threshold, countNodes(selectedNodes, nodes), liveCounts);
  return judgeThreshold(policy.threshold, withoutOverdue(counts, overdueNodes)).isMet;
}

/** The decision about a health check whose spec is invalid. Its remediations in progress are left alone. */
export function decideInvalid(
  previous: NodeHealthCheckStatus,
  problem: string,
  nowMs: number,
  generation?: number,
): NodeCheckDecision {
  const status = composeStatus(
    {
      previous,
      generation,
      gateReason: undefined,
      counts: undefined,
      unhealthyNodes: previous.unhealthyNodes ?? [],
      inFlight: previous.inFlightRemediations ?? {},
      failed: undefined,
      disabled: { reason: "SpecInvalid", message: problem },
      storm: readStorm(previous),
      budgetSpent: undefined,
      stormGuard: false,
      pauseRequests: [],
    },
    nowMs,
  );
  return {
    gate: { outcome: "disabled", reason: problem },
    actions: [],
    status,
    nextCheckMs: undefined,
    transitions: enablement(previous, status),
    standing: [],
    nodes: [],
  };
}

function findGate(
  snapshot: NodeCheckSnapshot,
  found: { counts: NodeCounts; allowance: ThresholdJudgment; storm: Storm; disabled: Disabled | undefined },
): NodeCheckGate | undefined {
  const { policy, blocked } = snapshot;
  const { counts, allowance, storm, disabled } = found;
  const skipped = (key: string, type: "Normal" | "Warning", note: string): NodeAnnouncement => ({
    key,
    type,
    reason: "RemediationSkipped",
    note,
  });
  // A disabled health check has its own Event and condition.
  if (disabled !== undefined) return { outcome: "disabled", reason: disabled.message, announcement: undefined };
  if (policy.pauseRequests.length > 0) {
    const reason = `Postponing potential remediations because of pause requests: ${policy.pauseRequests.join(", ")}`;
    return { outcome: "paused", reason, announcement: skipped("paused", "Normal", reason) };
  }
  const upgrade = findUpgrade(snapshot);
  if (upgrade !== undefined) {
    const reason = `Postponing potential remediations because of ongoing cluster upgrade: ${upgrade}`;
    return { outcome: "upgrading", reason, announcement: skipped("upgrading", "Normal", reason) };
  }
  if (blocked !== undefined) {
    const reason = `No new remediation starts: ${blocked}`;
    return { outcome: "blocked", reason, announcement: skipped("blocked", "Warning", reason) };
  }
  if (!allowance.isMet) {
    const reason = `Skipped remediation because the number of healthy nodes selected by the selector is ${counts.healthy} and should equal or exceed ${allowance.required}`;
    return { outcome: "threshold", reason, announcement: skipped("threshold", "Warning", reason) };
  }
  if (storm.state === "cooldown") {
    const reason = "Storm recovery active: skipping creation of new remediations";
    return { outcome: "storm", reason, announcement: skipped("storm", "Warning", reason) };
  }
  return undefined;
}

/**
 * Finds a remediation in progress whose template was removed from the spec. The CRD of ironfence refuses such an edit,
 * but the CRD of another operator allows it. Without this check, the node would get two remediations at the same time.
 */
function findEdit({ nodes, policy }: NodeCheckSnapshot): Disabled | undefined {
  for (const { remediations } of nodes) {
    for (const remediation of remediations) {
      const { object, terminating, timedOut, succeeded } = remediation;
      if (terminating || timedOut !== undefined || succeeded === "True" || succeeded === "False") continue;
      if (isOfAnyStep(policy.steps, remediation)) continue;
      const { kind, metadata } = object;
      const message = `spec must not change while a node is being remediated: ${kind} ${metadata.name} is in progress, and the spec no longer has its template`;
      return { reason: "SpecInvalid", message };
    }
  }
  return undefined;
}

/**
 * A Metal3Remediation is served only if a Machine owns it. Only nodes of OKD name their Machine, so in other clusters
 * every Metal3Remediation would fail.
 */
function findTemplateWithoutMachine({ templates, platform }: NodeCheckSnapshot): Disabled | undefined {
  if (platform.isOkd || "reason" in templates) return undefined;
  const isMetal3 = ({ type }: Template): boolean =>
    type.group === INFRASTRUCTURE_GROUP && type.kind === METAL3_REMEDIATION_KIND;
  const template = templates.find(isMetal3);
  if (template === undefined) return undefined;
  const why =
    "a Metal3Remediation must be owned by a Machine, and only on OKD does a NodeHealthCheck know the Machine of a node";
  const next = "use a MachineHealthCheck with this template, or a BareMetalRemediationTemplate here";
  const message = `Remediation template is invalid: Metal3RemediationTemplate ${template.name}: ${why}: ${next}`;
  return { reason: "RemediationTemplateInvalid", message };
}

/**
 * Which part of the cluster is being upgraded. With a hosted control plane, only the nodes show an upgrade: their
 * desired configuration differs from the current one.
 */
function findUpgrade({ platform, nodes }: NodeCheckSnapshot): string | undefined {
  if (platform.upgrading !== undefined) return `ClusterVersion ${platform.upgrading} is progressing`;
  if (!platform.isOkd) return undefined;
  const changing = nodes.find(({ node, selected, health }) => {
    const { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired = "" } = node?.metadata.annotations ?? {};
    return selected && health.state === "unhealthy" && desired !== "" && desired !== current;
  });
  return changing === undefined ? undefined : `node ${changing.name} is being reconfigured`;
}

// The node that has been unhealthy for the longest time comes first. The order matters for control plane nodes, because
// only one of them may start at a time.
function longestUnhealthyFirst(nodes: readonly NodeFacts[]): NodeFacts[] {
  const since = ({ health }: NodeFacts) => (health.state === "unhealthy" ? health.sinceMs : Infinity);
  return [...nodes].sort((a, b) => {
    const [sinceA, sinceB] = [since(a), since(b)];
    if (sinceA !== sinceB) return sinceA < sinceB ? -1 : 1;
    return a.name < b.name ? -1 : 1;
  });
}

// Entries keep their positions, so that a different order alone does not change the status.
function inStatusOrder(entries: readonly UnhealthyNode[], previous: NodeHealthCheckStatus): UnhealthyNode[] {
  const positions = new Map((previous.unhealthyNodes ?? []).map(({ name }, index) => [name, index]));
  const position = ({ name }: UnhealthyNode) => positions.get(name) ?? positions.size;
  return [...entries].sort((a, b) => position(a) - position(b));
}

function enablement(before: NodeHealthCheckStatus, after: NodeHealthCheckStatus): NodeAnnouncement[] {
  const isDisabled = readDisabled(after);
  if (isDisabled === true && (readDisabled(before) !== true || disabledNote(before) !== disabledNote(after))) {
    const note = `Disabling NHC. ${disabledNote(after)}`;
    return [{ key: "disabled", type: "Warning", reason: "Disabled", note }];
  }
  if (isDisabled === false && readDisabled(before) !== false) {
    const note = "No issues found, NodeHealthCheck is enabled.";
    return [{ key: "enabled", type: "Normal", reason: "Enabled", note }];
  }
  return [];
}

const STORM_EVENTS: Readonly<Record<Storm["state"], Omit<NodeAnnouncement, "key">>> = {
  storm: {
    type: "Warning",
    reason: "StormRecoveryStarted",
    note: "Too few nodes are healthy: no new remediation starts until enough are healthy and the cooldown is over",
  },
  cooldown: {
    type: "Warning",
    reason: "StormRecoveryCooldownStarted",
    note: "Enough nodes are healthy again: remediation continues after the cooldown",
  },
  calm: { type: "Normal", reason: "StormRecoveryEnded", note: "The storm is over: remediation continues" },
};

function stormTransitions(before: Storm, after: Storm): NodeAnnouncement[] {
  return before.state === after.state ? [] : [{ key: "storm", ...STORM_EVENTS[after.state] }];
}
