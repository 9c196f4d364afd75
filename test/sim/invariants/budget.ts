import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import { CONTROL_PLANE_ROLES, REQUEST } from "../../../src/api/names/labels.ts";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Facts, Invariant } from "./facts.ts";
import { agentWrite, isFinal } from "./facts.ts";

/**
 * Tolerance for changes that have not reached the agent yet, for its request in transit, and for node times in whole
 * seconds.
 */
const ON_ITS_WAY_MS = 1_000;
/** The agent uses a view that is up to 2 s late. */
const NODES_LAG_MAX_MS = 2_000;

/**
 * S8. When an agent starts a remediation, at least `minHealthy` of the health check's nodes are Ready and not being
 * remediated, and no other control plane node is being remediated. The stored state of up to one second before counts
 * (of up to 3 s before while the agent's watch on Nodes is delayed). As with upstream's health check, only conditions
 * and remediations of health checks make a node unhealthy, not a remediation that a user created. A remediation for a
 * request of another kind is started only if there is such a request. Health checks here have `minHealthy` as a number
 * and select by `matchLabels`.
 */
export const healthBudget: Invariant = {
  name: "S8",
  says: "the health budget is never exceeded by remediations that start",
  check: (facts, step) => {
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write?.type !== "ADDED") return undefined;
    const name = nodeOf(write.object);
    const { labels, ownerReferences = [] } = write.object.metadata;
    if (labels?.[REQUEST] !== undefined) {
      const isAsked = ownerReferences.some(({ controller, uid }) => controller === true && facts.asked.has(uid));
      return isAsked ? undefined : `remediation ${name} was started without a request`;
    }
    const check = [...facts.checks.values()].find((candidate) =>
      ownerReferences.some(({ uid }) => uid === candidate.metadata.uid),
    );
    if (check === undefined) return `a remediation of ${name} was started by no health check`;
    const nodes = [...facts.nodes.values()].filter((node) => selects(check, node));
    const treated = new Set(remediated(facts));
    const { creationTimestamp } = write.object.metadata;
    const lagMs = ON_ITS_WAY_MS + (facts.nodesLag ? NODES_LAG_MAX_MS : 0);
    const sinceMs = (parseTimeMs(creationTimestamp) ?? 0) - lagMs;
    const healthy = nodes.filter((node) => wasReady(node, sinceMs) && !treated.has(node.metadata.name)).length;
    const required = Number(check.spec.minHealthy ?? 0);
    if (healthy < required) return `a remediation of ${name} was started with ${healthy} healthy nodes of ${required}`;
    const isControlPlane = (node: string): boolean =>
      CONTROL_PLANE_ROLES.some((role) => role in (facts.nodes.get(node)?.metadata.labels ?? {}));
    const others = remediated(facts, write.object.metadata.uid).filter((node) => node !== name && isControlPlane(node));
    return isControlPlane(name) && others.length > 0
      ? `control plane node ${name} is remediated while ${others.join(", ")} is`
      : undefined;
  },
};

const ZONE = "topology.kubernetes.io/zone";
/**
 * States with a slot: from the read before the power-off until the host reads On. A remediation that is being undone
 * may or may not count, because its BMC may never answer.
 */
const UNDER_WAY: readonly string[] = ["Verifying", "PoweringOff", "Releasing", "Provisioning", "PoweringOn"];
/** Reasons for long waits that do not concern other remediations. */
const WAITS_ELSEWHERE: readonly (string | undefined)[] = [
  "ClusterUnreachable",
  "ClusterExchanged",
  "ApiFailing",
  "InputUnread",
  "UnknownState",
];
/** How long a remediation may keep its slot while it waits for one of these reasons or is past its deadline. */
const SLOT_KEPT_MS = 60_000;
/** How long a remediation may wait for admission while a slot is free. Admissions are decided every few seconds. */
const STARVES_AFTER_MS = 60_000;
/** How long a released slot may stay free. The next remediation must read that, and store that it begins. */
const HANDED_ON_MS = 10_000;

/**
 * S8. By the stored states, no more hosts are remediated at once than the agents' options allow, in total and per zone.
 */
export const limitsHold: Invariant = {
  name: "S8",
  says: "no more hosts are remediated at once than the limits allow, in all and of one zone",
  check: (facts, step) => {
    const { limits } = facts;
    if (limits.hosts === Infinity && limits.perZone === Infinity) return undefined;
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write === undefined || write.type === "DELETED" || !isUnderWay(write.object)) return undefined;
    if (write.previous !== undefined && isUnderWay(write.previous)) return undefined;
    // A remediation that waits for another reason may have released its slot just now.
    const begun = inPlace(facts, 0);
    const zone = zoneOf(facts, nodeOf(write.object));
    const inZone = [...begun].filter((node) => zone !== undefined && zoneOf(facts, node) === zone).length;
    if (begun.size > limits.hosts) return `${begun.size} hosts are remediated at once: the limit is ${limits.hosts}`;
    return inZone > limits.perZone
      ? `${inZone} hosts of ${zone} are remediated at once: the limit is ${limits.perZone}`
      : undefined;
  },
};

/**
 * S8, the other half. A remediation waits for admission only while the limits are used up. A remediation does not count
 * if its host reads On, if its cluster or API cannot be reached, or if it is past its deadline. The quorum of etcd may
 * also make a remediation wait.
 */
export const noRemediationStarves: Invariant = {
  name: "S8",
  says: "no remediation waits behind one whose host reads On, or whose cluster or API cannot be reached",
  check: (facts, step) => {
    const { limits, clocksAgree, calmSinceMs, atMs } = facts;
    const isBounded = limits.hosts !== Infinity || limits.perZone !== Infinity;
    if (step.type !== "passed" || !isBounded || !clocksAgree || atMs - calmSinceMs <= SLOT_KEPT_MS + STARVES_AFTER_MS)
      return undefined;
    for (const uid of facts.present) {
      const remediation = facts.remediations.get(uid);
      if (remediation === undefined || !starves(facts, remediation)) continue;
      return `${remediation.metadata.name} waits for admission, though fewer are at work than the limits allow`;
    }
    return undefined;
  },
};

function starves(facts: Facts, remediation: BareMetalRemediation): boolean {
  const { limits, epochMs } = facts;
  const { phase, timeline } = remediation.status ?? {};
  const last = timeline?.at(-1);
  if (phase !== "Resolving" || last?.step !== "WaitingForTurn") return false;
  if (epochMs - (parseTimeMs(last.time) ?? epochMs) <= STARVES_AFTER_MS) return false;
  const name = nodeOf(remediation);
  const { labels = {} } = facts.nodes.get(name)?.metadata ?? {};
  if (CONTROL_PLANE_ROLES.some((role) => role in labels)) return false;
  const busy = inPlace(facts, STARVES_AFTER_MS);
  const zone = zoneOf(facts, name);
  const inZone = [...busy].filter((node) => zone !== undefined && zoneOf(facts, node) === zone).length;
  return busy.size < limits.hosts && inZone < limits.perZone;
}

function zoneOf(facts: Facts, node: string): string | undefined {
  return facts.hosts.get(node)?.spec.labels[ZONE];
}

/**
 * Nodes of remediations with a slot. @param slackMs for how long a remediation still counts after it may have released
 * its slot.
 */
function inPlace(facts: Facts, slackMs: number): Set<string> {
  const nodes = new Set<string>();
  for (const [uid, remediation] of facts.remediations) {
    const isPresent = facts.present.has(uid);
    // An undo may or may not count, and neither is certain for a remediation that has just released its slot, even if
    // it is deleted. For a waiting remediation, both count.
    const isUndoing = isPresent && remediation.status?.phase === "Undoing";
    const mayCount = slackMs > 0 && (isUndoing || hasJustLeft(facts, remediation));
    if (!((isPresent && isUnderWay(remediation)) || mayCount)) continue;
    if (!hasGivenWay(facts, remediation, slackMs)) nodes.add(nodeOf(remediation));
  }
  return nodes;
}

function hasJustLeft({ epochMs }: Facts, remediation: BareMetalRemediation | undefined): boolean {
  const { phase = "Resolving", timeline } = remediation?.status ?? {};
  return phase !== "Resolving" && epochMs - (parseTimeMs(timeline?.at(-1)?.time) ?? 0) <= HANDED_ON_MS;
}

function hasGivenWay(facts: Facts, { status }: BareMetalRemediation, slackMs: number): boolean {
  const reason = status?.conditions?.find(({ type }) => type === "Processing")?.reason;
  if (reason === "Paused" || reason === "Maintenance") return false;
  const last = status?.timeline?.at(-1);
  const isElsewhere = WAITS_ELSEWHERE.includes(reason);
  // An agent whose clock has jumped past a deadline must not treat the slot as released long ago.
  if (!facts.clocksAgree) return isElsewhere || facts.atMs - facts.clocksDoubtedAtMs > SLOT_KEPT_MS;
  const deadlineMs = parseTimeMs(status?.attempt?.deadline) ?? Infinity;
  const sinceMs = isElsewhere && last?.step === reason ? parseTimeMs(last?.time) : undefined;
  return facts.epochMs - Math.min(deadlineMs, sinceMs ?? Infinity) > SLOT_KEPT_MS + slackMs;
}

function isUnderWay({ status }: BareMetalRemediation): boolean {
  return UNDER_WAY.includes(status?.phase ?? "");
}

/** Nodes with a remediation of a health check that has no verdict. */
function remediated(facts: Facts, butUid?: string): string[] {
  return [...facts.present].flatMap((uid) => {
    const remediation = facts.remediations.get(uid);
    if (remediation === undefined || uid === butUid || isFinal(remediation)) return [];
    return remediation.metadata.ownerReferences === undefined ? [] : [nodeOf(remediation)];
  });
}

function nodeOf({ metadata }: BareMetalRemediation): string {
  return metadata.annotations?.["remediation.medik8s.io/node-name"] ?? metadata.name;
}

function selects(check: NodeHealthCheck, node: Node): boolean {
  return Object.entries(check.spec.selector.matchLabels ?? {}).every(
    ([key, value]) => node.metadata.labels?.[key] === value,
  );
}

/** Whether the node is Ready, or stopped being Ready after that time. */
function wasReady(node: Node, atMs: number): boolean {
  const ready = node.status.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" || (parseTimeMs(ready?.lastTransitionTime) ?? Number.NEGATIVE_INFINITY) > atMs;
}
