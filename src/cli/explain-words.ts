import { MANUALLY_CONFIRMED_HEALTHY } from "../api/annotations.ts";
import type { Node } from "../api/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../api/labels.ts";
import type { RemediationRecord } from "../api/node-health-check.ts";
import { judgeThreshold, takeCensus } from "../detector/nodes/decide/threshold.ts";
import type { Action, NodeFacts, Snapshot } from "../detector/nodes/decide/decision.ts";
import { isOfStep } from "../detector/nodes/decide/escalation.ts";
import type { HealthRule } from "../detector/nodes/decide/health.ts";
import type { LiveCheck, LiveDecisions } from "../detector/nodes/live.ts";
import { judgeProvenOff } from "../detector/nodes/decide/skip-duration.ts";
import { readStorm } from "../detector/nodes/decide/status.ts";
import { isControlPlane } from "../nodes/control-plane.ts";
import { parseTimeMs, toTime } from "../runtime/time.ts";

/** Actions that are described by their kind alone. */
const PLAIN_ACTIONS: Readonly<Partial<Record<string, string>>> = {
  renewLease: "renew the node's lease",
  releaseLease: "give the node's lease back",
  recordAttempts: "note on the health check how often the node was remediated",
  consumeConfirmation: `take annotation ${MANUALLY_CONFIRMED_HEALTHY} off the node`,
};

/** One thing that a decision rests on. */
export interface Reason {
  what: string;
  found: string;
}

/** What one health check does about one node. */
export interface NodeExplanation {
  healthCheck: string;
  /** Whether its selector covers the node. */
  selected: boolean;
  /** One word, e.g. `create`, `excluded`, `healthy`. */
  outcome: string;
  reason: string;
  /** What would be written now. */
  actions: string[];
  /** RFC 3339; when the answer changes though nothing else does. */
  nextCheck?: string;
  reasons: Reason[];
}

/** What one health check does about all of its nodes. */
export interface CheckExplanation {
  healthCheck: string;
  phase: string;
  /** Why nothing new may start; absent where it may. */
  gate?: { outcome: string; reason: string };
  observedNodes: number;
  healthyNodes: number;
  nextCheck?: string;
  reasons: Reason[];
  /** Those that there is something to say of. */
  nodes: { name: string; outcome: string; reason: string; actions: string[]; nextCheck?: string }[];
}

/** Explains one node under every health check; undefined where there is no such node and nothing is remembered of it. */
export function explainNode(live: LiveDecisions, name: string): NodeExplanation[] | undefined {
  const node = live.nodes.get({ name });
  const isKnown = node !== undefined || live.checks.some(({ snapshot }) => factsOf(snapshot, name) !== undefined);
  return isKnown ? live.checks.map((check) => explainUnder(live, check, name, node)) : undefined;
}

/** Explains one health check. */
export function explainCheck({ check, snapshot, decision }: LiveCheck, nowMs: number): CheckExplanation {
  const { status, gate, nextCheckMs } = decision;
  return {
    healthCheck: check.metadata.name,
    phase: status.phase ?? "",
    ...(gate !== undefined && { gate: { outcome: gate.outcome, reason: gate.reason } }),
    observedNodes: status.observedNodes ?? 0,
    healthyNodes: status.healthyNodes ?? 0,
    ...timed(nextCheckMs),
    reasons: snapshot === undefined ? [] : gateReasons(snapshot, nowMs),
    nodes: decision.nodes.map((verdict) => ({
      name: verdict.name,
      outcome: verdict.outcome,
      reason: verdict.reason,
      actions: actionsOn(decision.actions, verdict.name),
      ...timed(verdict.nextCheckMs),
    })),
  };
}

/** A time, and how far off it is. */
export function tellTime(time: string, nowMs: number): string {
  const awayMs = (parseTimeMs(time) ?? nowMs) - nowMs;
  return awayMs > 0 ? `${time} (in ${tellDuration(awayMs)})` : `${time} (${tellDuration(-awayMs)} ago)`;
}

/** A duration as Go writes it, to the second. */
export function tellDuration(durationMs: number): string {
  const seconds = Math.round(durationMs / 1_000);
  const parts = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ].filter(([amount]) => amount !== 0);
  return parts.length === 0 ? "0s" : parts.map(([amount, unit]) => `${amount}${unit}`).join("");
}

function explainUnder(
  { nowMs }: LiveDecisions,
  { check, snapshot, decision }: LiveCheck,
  name: string,
  node: Node | undefined,
): NodeExplanation {
  const healthCheck = check.metadata.name;
  if (snapshot === undefined) {
    const reason = decision.gate?.reason ?? "";
    return { healthCheck, selected: false, outcome: "disabled", reason, actions: [], reasons: [] };
  }
  const facts = factsOf(snapshot, name);
  const verdict = decision.nodes.find((told) => told.name === name);
  const selected = node !== undefined && snapshot.policy.selects(node.metadata.labels);
  const unsaid = selected
    ? { outcome: "healthy", reason: "No condition makes it unhealthy" }
    : { outcome: "notSelected", reason: "Its selector does not cover the node" };
  return {
    healthCheck,
    selected,
    outcome: (verdict ?? unsaid).outcome,
    reason: (verdict ?? unsaid).reason,
    actions: actionsOn(decision.actions, name),
    ...timed(verdict?.nextCheckMs),
    reasons:
      selected || facts !== undefined
        ? [...nodeReasons(snapshot, node, facts, nowMs), ...gateReasons(snapshot, nowMs)]
        : [],
  };
}

function nodeReasons(
  snapshot: Snapshot,
  node: Node | undefined,
  facts: NodeFacts | undefined,
  nowMs: number,
): Reason[] {
  const { policy } = snapshot;
  if (node === undefined) return [{ what: "node", found: "it is gone" }, ...attempts(snapshot, facts)];
  const { labels, annotations, name } = node.metadata;
  const reasons: Reason[] = policy.rules.map((rule) => ({
    what: `${rule.type}=${rule.status} for ${tellDuration(rule.durationMs)}`,
    found: tellCondition(node, rule, nowMs),
  }));
  if (!policy.selects(labels)) reasons.push({ what: "selector", found: "no longer covers the node" });
  const label = labels?.[EXCLUDE_FROM_REMEDIATION];
  if (label !== undefined) reasons.push({ what: "label", found: `${EXCLUDE_FROM_REMEDIATION}=${label}` });
  if (annotations?.[MANUALLY_CONFIRMED_HEALTHY] !== undefined) {
    reasons.push({ what: "annotation", found: `${MANUALLY_CONFIRMED_HEALTHY}: a person has confirmed its health` });
  }
  if (isControlPlane(node)) {
    const others = [...snapshot.controlPlaneBusy].filter((busy) => busy !== name);
    const found = others.length === 0 ? "no other node of it is in remediation" : `${others.join(", ")} in remediation`;
    reasons.push({ what: "control plane", found });
  }
  if (policy.skipsDurationIfOff && facts?.host !== undefined) {
    const verdict = judgeProvenOff(node, facts.host, nowMs);
    const found = verdict.proven ? `yes: ${verdict.proof}` : `no: ${verdict.why}`;
    reasons.push({ what: "proven off", found });
  }
  if (facts?.peerCheck !== undefined) reasons.push({ what: "other check", found: facts.peerCheck });
  if (facts?.deferral !== undefined) {
    const { reason, untilMs } = facts.deferral;
    reasons.push({ what: "held back", found: `${reason}, until ${tellTime(toTime(untilMs), nowMs)}` });
  }
  return [...reasons, ...attempts(snapshot, facts)];
}

function tellCondition({ status }: Node, rule: HealthRule, nowMs: number): string {
  const condition = status.conditions?.find(({ type }) => type === rule.type);
  if (condition === undefined) return `the node has no condition ${rule.type}`;
  const sinceMs = parseTimeMs(condition.lastTransitionTime);
  if (sinceMs === undefined) return `${condition.status}, but not since when: it counts as no match`;
  const since = `since ${toTime(sinceMs)}`;
  if (condition.status !== rule.status) return `no: ${condition.status} ${since}`;
  const untilMs = sinceMs + rule.durationMs;
  return untilMs <= nowMs ? `yes, ${since}` : `${since}; unhealthy from ${tellTime(toTime(untilMs), nowMs)} on`;
}

function attempts({ policy }: Snapshot, facts: NodeFacts | undefined): Reason[] {
  const records = facts?.previous?.remediations ?? [];
  return records.map((record) => ({ what: "attempt", found: tellAttempt(policy.steps, record) }));
}

function tellAttempt(steps: Snapshot["policy"]["steps"], record: RemediationRecord): string {
  const { resource, started, timedOut } = record;
  const name = `${resource.kind ?? ""} ${resource.name ?? ""} started ${started}`;
  if (timedOut !== undefined) return `${name}, given up ${timedOut}`;
  const timeoutMs = steps.find((step) => isOfStep(step, record))?.timeoutMs;
  const startedMs = parseTimeMs(started);
  if (timeoutMs === undefined || startedMs === undefined) return `${name}, without a time-out`;
  return `${name}, given up at ${toTime(startedMs + timeoutMs)}`;
}

/** What decides whether anything new may start, whatever the node. */
function gateReasons(
  { policy, templates, selectedNodes, nodes, blocked, status, hostProblem }: Snapshot,
  nowMs: number,
): Reason[] {
  const census = takeCensus(selectedNodes, nodes);
  const { required, isMet } = judgeThreshold(policy.threshold, census);
  const storm = readStorm(status);
  const verb = isMet ? "at least" : "too few, at least";
  const reasons: Reason[] = [
    { what: "threshold", found: `${census.healthy} of ${census.selected} are healthy; ${verb} ${required} must be` },
    {
      what: "templates",
      found: "reason" in templates ? templates.message : "all steps have theirs",
    },
  ];
  if (policy.pauseRequests.length > 0) reasons.push({ what: "paused", found: policy.pauseRequests.join(", ") });
  if (policy.stormCooldownMs !== undefined) {
    const untilMs = storm.state === "cooldown" ? storm.sinceMs + policy.stormCooldownMs : undefined;
    const found = untilMs === undefined ? storm.state : `cooldown until ${tellTime(toTime(untilMs), nowMs)}`;
    reasons.push({ what: "storm guard", found });
  }
  if (hostProblem !== undefined) reasons.push({ what: "durations", found: `never skipped: ${hostProblem}` });
  if (blocked !== undefined) reasons.push({ what: "standstill", found: blocked });
  return reasons;
}

function actionsOn(actions: readonly Action[], name: string): string[] {
  return actions.filter((action) => nodeOf(action) === name).map(tellAction);
}

function nodeOf(action: Action): string {
  if (action.type === "recordAttempts") return action.key;
  if ("nodeName" in action) return action.nodeName;
  return "node" in action ? action.node.metadata.name : action.remediation.nodeName;
}

function tellAction(action: Action): string {
  switch (action.type) {
    case "create":
      return `create a ${action.template.type.kind} from ${action.template.name}, if the node reads unhealthy live and its lease is free`;
    case "delete":
      return `delete ${tellRemediation(action)}`;
    case "annotate":
      return action.value === undefined
        ? `take annotation ${action.annotation} off ${tellRemediation(action)}`
        : `annotate ${tellRemediation(action)} with ${action.annotation}=${action.value}`;
    default:
      return PLAIN_ACTIONS[action.type] ?? action.type;
  }
}

function tellRemediation({ remediation: { object } }: Extract<Action, { type: "delete" | "annotate" }>): string {
  return `${object.kind} ${object.metadata.name}`;
}

function factsOf(snapshot: Snapshot | undefined, name: string): NodeFacts | undefined {
  return snapshot?.nodes.find((facts) => facts.name === name);
}

function timed(atMs: number | undefined): { nextCheck?: string } {
  return atMs === undefined ? {} : { nextCheck: toTime(atMs) };
}
