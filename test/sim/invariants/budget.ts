import type { BareMetalRemediation } from "../../../src/api/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/core.ts";
import { CONTROL_PLANE_ROLES } from "../../../src/api/labels.ts";
import type { NodeHealthCheck } from "../../../src/api/node-health-check.ts";
import type { Facts, Invariant } from "./facts.ts";
import { agentWrite, isFinal } from "./facts.ts";

/**
 * S8. When an agent starts a remediation, at least `minHealthy` of the health check's nodes are Ready and in no remediation,
 * by storage at that moment, and no other control plane node is in one. A remediation that a person ordered does not make a
 * Ready node unhealthy: as with upstream's health check, conditions tell that, and remediations of health checks. Health checks here name `minHealthy` as a number, and
 * select by `matchLabels`.
 */
export const healthBudget: Invariant = {
  name: "S8",
  says: "the health budget is never exceeded by remediations that start",
  check: (facts, step) => {
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write?.type !== "ADDED") return undefined;
    const name = nodeOf(write.object);
    const check = [...facts.checks.values()].find((candidate) =>
      write.object.metadata.ownerReferences?.some(({ uid }) => uid === candidate.metadata.uid),
    );
    if (check === undefined) return `a remediation of ${name} was started by no health check`;
    const nodes = [...facts.nodes.values()].filter((node) => selects(check, node));
    const treated = new Set(remediated(facts));
    const healthy = nodes.filter((node) => isReady(node) && !treated.has(node.metadata.name)).length;
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

function isReady(node: Node): boolean {
  return node.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}
