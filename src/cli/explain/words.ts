import { MANUALLY_CONFIRMED_HEALTHY } from "../../api/names/annotations.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../api/names/labels.ts";
import type { RemediationRecord } from "../../api/ironfence/node-health-check.ts";
import type {
  NodeAction,
  NodeCheckDecision,
  NodeFacts,
  NodeCheckSnapshot,
} from "../../detector/nodes/decide/decision.ts";
import { isOfStep } from "../../detector/nodes/decide/escalation.ts";
import type { NodePolicy } from "../../detector/nodes/decide/policy.ts";
import type { EvaluatedNodeCheck, EvaluatedNodeChecks } from "../../detector/nodes/evaluate-once.ts";
import { readStorm } from "../../detector/nodes/decide/status.ts";
import type { ObservedHost } from "../../detector/shared/model/observed-host.ts";
import type { Template } from "../../detector/shared/model/template.ts";
import { isControlPlane } from "../../nodes/control-plane.ts";
import { parseTimeMs, toTime } from "../../runtime/time.ts";

/** Actions that are described by their kind alone. */
const PLAIN_ACTIONS: Readonly<Partial<Record<string, string>>> = {
  renewLease: "renew the node's lease",
  releaseLease: "release the node's lease",
  recordAttempts: "record on the health check how often the node was remediated",
  consumeConfirmation: `remove annotation ${MANUALLY_CONFIRMED_HEALTHY} from the node`,
};

/** One input of a decision, as the objects show it. What follows from it is in the reason of the decision. */
export interface DecisionInput {
  what: string;
  found: string;
}

/** What one health check does about one node. */
export interface NodeExplanation {
  healthCheck: string;
  /** Whether its selector covers the node. */
  selected: boolean;
  /** One word, for example `create`, `excluded`, `healthy`. */
  outcome: string;
  reason: string;
  /** What the agent would write now. */
  actions: string[];
  /** When the answer may change although no object does (RFC 3339). */
  nextCheck?: string;
  reasons: DecisionInput[];
}

/** What one health check does about all of its nodes. */
export interface CheckExplanation {
  healthCheck: string;
  phase: string;
  /** Why nothing new may start; absent if it may. */
  gate?: { outcome: string; reason: string };
  observedNodes: number;
  healthyNodes: number;
  nextCheck?: string;
  reasons: DecisionInput[];
  /** The nodes that the decision is about: those that are not healthy or have a remediation. */
  nodes: { name: string; outcome: string; reason: string; actions: string[]; nextCheck?: string }[];
}

/** Explains one node under every health check; undefined if there is no such node and no record of it. */
export function explainNode(live: EvaluatedNodeChecks, name: string): NodeExplanation[] | undefined {
  const node = live.nodes.get({ name });
  const isKnown = node !== undefined || live.checks.some(({ snapshot }) => factsOf(snapshot, name) !== undefined);
  return isKnown ? live.checks.map((check) => explainUnder(check, name, node)) : undefined;
}

/** Explains one health check. */
export function explainCheck({ check, snapshot, decision }: EvaluatedNodeCheck): CheckExplanation {
  const { status, gate, nextCheckMs } = decision;
  return {
    healthCheck: check.metadata.name,
    phase: status.phase ?? "",
    ...(gate !== undefined && { gate: { outcome: gate.outcome, reason: gate.reason } }),
    observedNodes: status.observedNodes ?? 0,
    healthyNodes: status.healthyNodes ?? 0,
    ...timed(nextCheckMs),
    reasons: snapshot === undefined ? [] : gateFacts(snapshot, decision),
    nodes: decision.nodes.map((evaluated) => ({
      name: evaluated.name,
      outcome: evaluated.outcome,
      reason: evaluated.reason,
      actions: actionsOn(decision.actions, evaluated.name),
      ...timed(evaluated.nextCheckMs),
    })),
  };
}

/** A time, and how far it is from now. */
export function formatTime(time: string, nowMs: number): string {
  const awayMs = (parseTimeMs(time) ?? nowMs) - nowMs;
  return awayMs > 0 ? `${time} (in ${formatSeconds(awayMs)})` : `${time} (${formatSeconds(-awayMs)} ago)`;
}

/** A duration as Go writes it, to the second. */
export function formatSeconds(durationMs: number): string {
  const seconds = Math.round(durationMs / 1_000);
  const parts = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ].filter(([amount]) => amount !== 0);
  return parts.length === 0 ? "0s" : parts.map(([amount, unit]) => `${amount}${unit}`).join("");
}

function explainUnder(
  { check, snapshot, decision }: EvaluatedNodeCheck,
  name: string,
  node: Node | undefined,
): NodeExplanation {
  const healthCheck = check.metadata.name;
  if (snapshot === undefined) {
    const reason = decision.gate?.reason ?? "";
    return { healthCheck, selected: false, outcome: "disabled", reason, actions: [], reasons: [] };
  }
  const facts = factsOf(snapshot, name);
  const evaluated = decision.nodes.find((outcome) => outcome.name === name);
  const selected = node !== undefined && snapshot.policy.selects(node.metadata.labels);
  const undecided = selected
    ? { outcome: "healthy", reason: "No condition makes it unhealthy" }
    : { outcome: "notSelected", reason: "Its selector does not cover the node" };
  return {
    healthCheck,
    selected,
    outcome: (evaluated ?? undecided).outcome,
    reason: (evaluated ?? undecided).reason,
    actions: actionsOn(decision.actions, name),
    ...timed(evaluated?.nextCheckMs),
    reasons:
      selected || facts !== undefined ? [...nodeFacts(snapshot, node, facts), ...gateFacts(snapshot, decision)] : [],
  };
}

/** What `decide` used about the node, as its objects show it. */
function nodeFacts(
  { policy, controlPlaneBusy }: NodeCheckSnapshot,
  node: Node | undefined,
  facts: NodeFacts | undefined,
): DecisionInput[] {
  if (node === undefined) return [{ what: "node", found: "it does not exist" }, ...attempts(policy, facts)];
  const { labels, annotations, name } = node.metadata;
  const found: DecisionInput[] = policy.unhealthyConditions.map((rule) => ({
    what: `${rule.type}=${rule.status} for ${formatSeconds(rule.durationMs)}`,
    found: describeCondition(node, rule.type),
  }));
  if (!policy.selects(labels)) found.push({ what: "selector", found: "no longer covers the node" });
  const label = labels?.[EXCLUDE_FROM_REMEDIATION];
  if (label !== undefined) found.push({ what: "label", found: `${EXCLUDE_FROM_REMEDIATION}=${label}` });
  if (annotations?.[MANUALLY_CONFIRMED_HEALTHY] !== undefined) {
    found.push({ what: "annotation", found: `${MANUALLY_CONFIRMED_HEALTHY}: the operator has confirmed its health` });
  }
  if (isControlPlane(node)) {
    const others = [...controlPlaneBusy].filter((busy) => busy !== name);
    const busy = others.length === 0 ? "no other node of it is in remediation" : `${others.join(", ")} in remediation`;
    found.push({ what: "control plane", found: busy });
  }
  if (facts?.host !== undefined) found.push({ what: "host", found: describeHost(facts.host) });
  if (facts?.peerCheck !== undefined) found.push({ what: "other check", found: facts.peerCheck });
  if (facts?.deferral !== undefined) {
    const { reason, untilMs } = facts.deferral;
    found.push({ what: "held back", found: `${reason}, until ${toTime(untilMs)}` });
  }
  return [...found, ...attempts(policy, facts)];
}

function describeCondition({ status }: Node, type: string): string {
  const condition = status.conditions?.find((present) => present.type === type);
  if (condition === undefined) return `the node has no condition ${type}`;
  const { lastTransitionTime } = condition;
  return `${condition.status} ${lastTransitionTime === undefined ? "without a time" : `since ${lastTransitionTime}`}`;
}

function describeHost({ problem, stopped, targets }: ObservedHost): string {
  const unknown = problem ?? stopped;
  if (unknown !== undefined) return unknown;
  if (targets.length === 0) return "no FencingTarget names the node";
  return targets
    .map(({ target: { metadata, powerState = "Unknown", offProof } }) => {
      const proof = offProof === undefined ? "" : `, proven off at ${offProof.time}`;
      return `FencingTarget ${metadata.namespace}/${metadata.name} reads ${powerState}${proof}`;
    })
    .join("; ");
}

function attempts({ steps }: NodePolicy, facts: NodeFacts | undefined): DecisionInput[] {
  const records = facts?.previous?.remediations ?? [];
  return records.map((record) => ({ what: "attempt", found: describeAttempt(steps, record) }));
}

function describeAttempt(steps: NodePolicy["steps"], record: RemediationRecord): string {
  const { resource, started, timedOut } = record;
  const name = `${resource.kind ?? ""} ${resource.name ?? ""} started ${started}`;
  if (timedOut !== undefined) return `${name}, gave up at ${timedOut}`;
  const timeoutMs = steps.find((step) => isOfStep(step, record))?.timeoutMs;
  return timeoutMs === undefined
    ? `${name}, without a timeout`
    : `${name}, with a timeout of ${formatSeconds(timeoutMs)}`;
}

/** What the gate of the health check depends on. The counts are those that `decide` used. */
function gateFacts(
  { policy, templates, blocked, hostProblem }: NodeCheckSnapshot,
  { status }: NodeCheckDecision,
): DecisionInput[] {
  const { observedNodes = 0, healthyNodes = 0 } = status;
  const found: DecisionInput[] = [
    { what: "threshold", found: `${healthyNodes} of ${observedNodes} are healthy; ${describeThreshold(policy)}` },
    { what: "templates", found: "reason" in templates ? templates.message : namesOf(templates) },
  ];
  if (policy.pauseRequests.length > 0) found.push({ what: "paused", found: policy.pauseRequests.join(", ") });
  if (policy.stormCooldownMs !== undefined) {
    const storm = readStorm(status);
    const lasts = formatSeconds(policy.stormCooldownMs);
    const since = storm.state === "cooldown" ? ` since ${toTime(storm.sinceMs)}, for ${lasts}` : "";
    found.push({ what: "storm guard", found: `${storm.state}${since}` });
  }
  if (hostProblem !== undefined) found.push({ what: "durations", found: `never skipped: ${hostProblem}` });
  if (blocked !== undefined) found.push({ what: "blocked", found: blocked });
  return found;
}

function describeThreshold({ threshold: { kind, amount } }: NodePolicy): string {
  return `${kind} is ${amount.unit === "nodes" ? amount.count : `${amount.percent}%`}`;
}

function namesOf(templates: readonly Template[]): string {
  return templates.map(({ type, name }) => `${type.kind}Template ${name}`).join(", ");
}

function actionsOn(actions: readonly NodeAction[], name: string): string[] {
  return actions.filter((action) => nodeOf(action) === name).map(describeAction);
}

function nodeOf(action: NodeAction): string {
  if (action.type === "recordAttempts") return action.key;
  if ("nodeName" in action) return action.nodeName;
  return "node" in action ? action.node.metadata.name : action.remediation.nodeName;
}

function describeAction(action: NodeAction): string {
  switch (action.type) {
    case "create":
      return `create a ${action.template.type.kind} from ${action.template.name}${proofOf(action)}, if the node reads unhealthy live and its lease is free`;
    case "delete":
      return `delete ${describeRemediation(action)}`;
    case "annotate":
      return action.value === undefined
        ? `remove annotation ${action.annotation} from ${describeRemediation(action)}`
        : `annotate ${describeRemediation(action)} with ${action.annotation}=${action.value}`;
    default:
      return PLAIN_ACTIONS[action.type] ?? action.type;
  }
}

function proofOf({ skipped }: Extract<NodeAction, { type: "create" }>): string {
  return skipped === undefined ? "" : ` before the duration is over, because ${skipped.proof}`;
}

function describeRemediation({
  remediation: { object },
}: Extract<NodeAction, { type: "delete" | "annotate" }>): string {
  return `${object.kind} ${object.metadata.name}`;
}

function factsOf(snapshot: NodeCheckSnapshot | undefined, name: string): NodeFacts | undefined {
  return snapshot?.nodes.find((facts) => facts.name === name);
}

function timed(atMs: number | undefined): { nextCheck?: string } {
  return atMs === undefined ? {} : { nextCheck: toTime(atMs) };
}
