import type { Node, NodeCondition } from "../../../../src/api/kubernetes/core.ts";
import type { Condition } from "../../../../src/api/schema/meta.ts";
import type { NodeHealthCheckStatus } from "../../../../src/api/ironfence/node-health-check.ts";
import { outageOf } from "../../../../src/api/kubernetes/outage.ts";
import { countAttempts } from "../../../../src/detector/shared/model/attempts.ts";
import type { NodeFacts, NodeCheckSnapshot } from "../../../../src/detector/nodes/decide/decision.ts";
import type { NodePolicy } from "../../../../src/detector/nodes/decide/policy.ts";
import { compileNodePolicy } from "../../../../src/detector/nodes/decide/policy.ts";
import { remediationKind } from "../../../../src/detector/shared/model/template-reference.ts";
import type { Remediation } from "../../../../src/detector/shared/model/remediation.ts";
import { readRemediation } from "../../../../src/detector/shared/model/remediation.ts";
import type { ObservedHost, ObservedTarget } from "../../../../src/detector/shared/model/observed-host.ts";
import type { Template } from "../../../../src/detector/shared/model/template.ts";
import { judgeHealth } from "../../../../src/detector/nodes/decide/health.ts";
import { toTime } from "../../../../src/runtime/time.ts";

// A small world of plain objects for table tests, without a server.

export const T0 = 1_800_000_000_000;
export const CHECK_UID = "check-1";

export function policyOf(spec: Record<string, unknown> = {}, annotations: Record<string, string> = {}): NodePolicy {
  const whole = {
    selector: { matchLabels: { pool: "a" } },
    unhealthyConditions: [
      { type: "Ready", status: "False", duration: "10s" },
      { type: "Ready", status: "Unknown", duration: "10s" },
    ],
    minHealthy: 0,
    remediationTemplate: templateRef("X"),
    ...spec,
  };
  const result = compileNodePolicy(whole, annotations);
  if ("problem" in result) throw new Error(result.problem);
  return result.policy;
}

export function templateRef(kind: string, name = `${kind.toLowerCase()}-template`) {
  return { apiVersion: "fence.example/v1", kind: `${kind}Template`, namespace: "fencing", name };
}

/** The spec of an escalation over the kinds X, Y, Z …, each with a timeout of one minute. */
export function escalation(...kinds: string[]) {
  return {
    remediationTemplate: undefined,
    escalatingRemediations: kinds.map((kind, index) => ({
      remediationTemplate: templateRef(kind),
      order: index + 1,
      timeout: "60s",
    })),
  };
}

export function templatesOf(policy: NodePolicy, manyPerNode = false): Template[] {
  return policy.steps.map((step) => ({
    name: step.template.name,
    namespace: step.template.namespace,
    type: {
      group: "fence.example",
      version: "v1",
      kind: remediationKind(step.template),
      plural: `${remediationKind(step.template).toLowerCase()}s`,
      namespaced: true,
    },
    remediationSpec: { a: 1 },
    labels: {},
    annotations: {},
    manyPerNode,
  }));
}

export function nodeOf(name: string, ready: "True" | "False" | "Unknown", sinceMs: number, labels = {}): Node {
  const condition: NodeCondition = { type: "Ready", status: ready, lastTransitionTime: toTime(sinceMs) };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, uid: `uid-${name}`, resourceVersion: "1", labels: { pool: "a", ...labels } },
    spec: {},
    status: { conditions: [condition] },
  };
}

export interface RemediationOptions {
  kind?: string;
  uid?: string;
  name?: string;
  createdMs?: number;
  succeeded?: string;
  /** Reason and message of condition Succeeded. */
  failure?: { reason: string; message: string };
  conditions?: { type: string; status: string }[];
  terminating?: boolean;
  annotations?: Record<string, string>;
}

export function remediationOf(nodeName: string, options: RemediationOptions = {}): Remediation {
  const { kind = "X", createdMs = T0, succeeded = "Unknown", terminating = false } = options;
  return readRemediation({
    apiVersion: "fence.example/v1",
    kind,
    metadata: {
      name: options.name ?? nodeName,
      namespace: "fencing",
      uid: options.uid ?? `${kind}-${nodeName}`,
      resourceVersion: "1",
      creationTimestamp: toTime(createdMs),
      annotations: {
        "remediation.medik8s.io/node-name": nodeName,
        "remediation.medik8s.io/template-name": `${kind.toLowerCase()}-template`,
        ...options.annotations,
      },
      ownerReferences: [
        { apiVersion: "remediation.medik8s.io/v1alpha1", kind: "NodeHealthCheck", name: "check", uid: CHECK_UID },
      ],
      ...(terminating && { deletionTimestamp: toTime(createdMs) }),
    },
    conditions: [{ type: "Succeeded", status: succeeded, ...options.failure }, ...(options.conditions ?? [])],
    powerOrdered: false,
    phaseFailed: false,
    failedAt: undefined,
  });
}

export function factsOf(policy: NodePolicy, node: Node, nowMs: number, more: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name: node.metadata.name,
    node,
    attempts: countAttempts([], more.remediations ?? [], T0),
    attemptsOfOthers: [],
    selected: true,
    health: judgeHealth(policy.unhealthyConditions, node.status.conditions, nowMs),
    previous: undefined,
    remediations: [],
    foreign: [],
    peerCheck: undefined,
    deferral: undefined,
    leaseRenewAtMs: nowMs + 3_600_000,
    skew: undefined,
    host: undefined,
    early: undefined,
    fenceableSinceMs: undefined,
    ...more,
  };
}

export function snapshotOf(
  policy: NodePolicy,
  nodes: NodeFacts[],
  more: Partial<NodeCheckSnapshot> = {},
): NodeCheckSnapshot {
  return {
    name: "check",
    generation: 1,
    status: {},
    policy,
    templates: templatesOf(policy),
    isHistoryFull: false,
    selectedNodes: Math.max(10, nodes.length),
    nodes,
    controlPlaneBusy: [],
    unseenKinds: [],
    blocked: undefined,
    overdueNodes: 0,
    liveCounts: undefined,
    clockSkew: undefined,
    hostProblem: undefined,
    platform: { isOkd: false, upgrading: undefined, hasTerminationHandler: false },
    ...more,
  };
}

/** The entry of a node in a status. */
export function entryIn(status: NodeHealthCheckStatus, name: string) {
  return status.unhealthyNodes?.find((entry) => entry.name === name);
}

export function conditionOf(type: string, status: Condition["status"], message = ""): Condition {
  return { type, status, message, reason: "Test", lastTransitionTime: toTime(T0) };
}

/** A FencingTarget that has proven the host of `node` off a second before T0. */
export function targetOf(node: Node, more: Partial<ObservedTarget> = {}, name = "t1"): ObservedTarget {
  const outage = outageOf(node);
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { namespace: "fencing", name, uid: `uid-${name}`, resourceVersion: "1" },
    nodeName: node.metadata.name,
    maintenance: false,
    isOwned: false,
    isObserved: true,
    powerState: "Off",
    ready: conditionOf("Ready", "True"),
    identityVerified: conditionOf("IdentityVerified", "True"),
    offProof: outage && { time: toTime(T0 - 1_000), ...outage },
    ...more,
  };
}

/** The facts about a host that is proven off. */
export function hostOf(
  node: Node,
  more: Partial<ObservedHost> = {},
  target: Partial<ObservedTarget> = {},
): ObservedHost {
  const targets = [{ target: targetOf(node, target), proofArrivedAgoMs: 1_000 }];
  return { problem: undefined, stopped: undefined, targets, ...more };
}
