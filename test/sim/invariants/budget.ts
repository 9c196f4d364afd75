import type { BareMetalRemediation } from "../../../src/api/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/core.ts";
import { CONTROL_PLANE_ROLES, REQUEST } from "../../../src/api/labels.ts";
import type { NodeHealthCheck } from "../../../src/api/node-health-check.ts";
import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Facts, Invariant } from "./facts.ts";
import { agentWrite, isFinal } from "./facts.ts";

/** What has changed a moment ago is on its way to the agent, and its order to start on its way here; nodes tell times in seconds. */
const ON_ITS_WAY_MS = 1_000;
/** A view is believed that is late by 2 s. */
const NODES_LAG_MAX_MS = 2_000;

/**
 * S8. When an agent starts a remediation, at least `minHealthy` of the health check's nodes are Ready and in no remediation,
 * by storage of up to a second before (of up to 3 s before while the agent's watch on Nodes is held back), and no other control plane node is in one. A remediation that a person ordered does not make a
 * Ready node unhealthy: as with upstream's health check, conditions tell that, and remediations of health checks. What serves a
 * request of another kind is started only where somebody has asked. Health checks here name `minHealthy` as a number, and
 * select by `matchLabels`.
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
      return isAsked ? undefined : `remediation ${name} was started at the request of nobody`;
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
/** From the look before the power-off until the verdict; one that is taken back may count, or no longer: its BMC may never answer. */
const UNDER_WAY: readonly string[] = [
  "Verifying",
  "PoweringOff",
  "Releasing",
  "Provisioning",
  "PoweringOn",
  "Rejoining",
  "Restoring",
];

/** S8. No more hosts are remediated at once than the agents were told, in all and of one zone, by what is stored. */
export const limitsHold: Invariant = {
  name: "S8",
  says: "no more hosts are remediated at once than the limits allow, in all and of one zone",
  check: (facts, step) => {
    const { limits } = facts;
    if (limits.hosts === Infinity && limits.perZone === Infinity) return undefined;
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write === undefined || write.type === "DELETED" || !isUnderWay(write.object)) return undefined;
    if (write.previous !== undefined && isUnderWay(write.previous)) return undefined;
    const zoneOf = (node: string): string | undefined => facts.hosts.get(node)?.spec.labels[ZONE];
    const begun = new Set([...facts.present].flatMap((uid) => begunNode(facts.remediations.get(uid))));
    const zone = zoneOf(nodeOf(write.object));
    const inZone = [...begun].filter((node) => zone !== undefined && zoneOf(node) === zone).length;
    if (begun.size > limits.hosts) return `${begun.size} hosts are remediated at once: the limit is ${limits.hosts}`;
    return inZone > limits.perZone
      ? `${inZone} hosts of ${zone} are remediated at once: the limit is ${limits.perZone}`
      : undefined;
  },
};

function begunNode(remediation: BareMetalRemediation | undefined): string[] {
  return remediation !== undefined && isUnderWay(remediation) ? [nodeOf(remediation)] : [];
}

function isUnderWay({ status }: BareMetalRemediation): boolean {
  return UNDER_WAY.includes(status?.phase ?? "");
}

/** Nodes with a health check's remediation without a verdict. */
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

/** Whether it is Ready, or has ceased to be after that moment. */
function wasReady(node: Node, atMs: number): boolean {
  const ready = node.status.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "True" || (parseTimeMs(ready?.lastTransitionTime) ?? Number.NEGATIVE_INFINITY) > atMs;
}
