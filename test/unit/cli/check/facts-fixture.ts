import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import type { NodeHealthCheck } from "../../../../src/api/ironfence/node-health-check.ts";
import type { CheckResult } from "../../../../src/cli/check/check.ts";
import { runChecks } from "../../../../src/cli/check/check.ts";
import { CHECKS } from "../../../../src/cli/check/lines/checks.ts";
import deployed from "../../../../src/cli/check/read/deployed.json" with { type: "json" };
import type { Deployment, Facts } from "../../../../src/cli/check/facts.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { VERSION } from "../../../../src/runtime/version.ts";
import { OVERVIEW } from "../overview-fixture.ts";

export const NOW_MS = OVERVIEW.nowMs;
const NAMESPACE = OVERVIEW.namespace;
const AGENT = "system:serviceaccount:ironfence-system:ironfence";
const policies = deployed.admissionPolicies.map(({ name }) => name);

export function node(name: string, change: Partial<Node> & { annotations?: Record<string, string> } = {}): Node {
  const { annotations, ...rest } = change;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: "1",
      labels: { role: "worker" },
      ...(annotations && { annotations }),
    },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True" }] },
    ...rest,
  };
}

export function target(
  name: string,
  ready: { status: "True" | "False"; reason: string; message?: string } = { status: "True", reason: "Usable" },
  spec: Partial<FencingTarget["spec"]> = {},
): FencingTarget {
  const condition = {
    type: "Ready",
    message: "reported by the probe",
    lastTransitionTime: toTime(NOW_MS - 600_000),
    ...ready,
  };
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { namespace: NAMESPACE, name, uid: `uid-${name}`, resourceVersion: "1" },
    spec: { nodeName: name, maintenance: false, identity: { verification: "Required" }, devices: [], ...spec },
    status: { conditions: [condition], lastProbeTime: toTime(NOW_MS - 600_000) },
  };
}

export function healthCheck(change: Partial<NodeHealthCheck> = {}): NodeHealthCheck {
  return {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: { name: "workers", uid: "uid-workers", resourceVersion: "1" },
    spec: {
      selector: { matchLabels: { role: "worker" } },
      minHealthy: 1,
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "300s" }],
      remediationTemplate: {
        apiVersion: "ironfence.io/v1alpha1",
        kind: "BareMetalRemediationTemplate",
        namespace: NAMESPACE,
        name: "reboot",
      },
    },
    ...change,
  };
}

const DEPLOYMENT: Deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { namespace: NAMESPACE, name: "ironfence", uid: "uid-d", resourceVersion: "1", generation: 1 },
  spec: { replicas: 2 },
  status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2 },
};

/** The Deployment with another number of replicas. */
export function deployment(replicas: number, status: Deployment["status"]): Deployment {
  return {
    ...DEPLOYMENT,
    spec: { replicas },
    status: { ...DEPLOYMENT.status, replicas, updatedReplicas: replicas, ...status },
  };
}

/** Three nodes, each of which could be fenced now. */
export const HEALTHY: Facts = {
  cluster: OVERVIEW.cluster,
  namespace: NAMESPACE,
  nowMs: NOW_MS,
  server: { major: 1, minor: 36, text: "v1.36.3" },
  clockOffset: { minMs: -500, maxMs: 500 },
  leases: [],
  overview: {
    ...OVERVIEW,
    agent: { ...OVERVIEW.agent, version: VERSION } as Overview["agent"],
    nodes: [node("n1"), node("n2"), node("n3")],
    targets: [target("n1"), target("n2"), target("n3")],
    healthChecks: [healthCheck()],
  },
  customResources: [{ kind: "FencingTarget", isInstalled: true, isOwn: true, missingFields: [] }],
  admission: {
    policies: new Set(policies),
    enforced: new Set(policies),
    users: new Map([["ironfence-agent-nodes", AGENT]]),
  },
  deployments: [DEPLOYMENT],
  permissions: [
    { permission: { verb: "patch", group: "", resource: "nodes" }, allowed: true, folder: "deploy/kustomize" },
  ],
  serviceAccount: "ironfence",
  familyKinds: [],
  templates: [{ text: "BareMetalRemediationTemplate reboot", healthChecks: ["workers"], problem: undefined }],
  unprobed: new Set(),
};

/** Healthy facts, with changes in the part that `ironfence status` reads. */
export function withOverview(change: Partial<Overview>): Facts {
  return { ...HEALTHY, overview: { ...HEALTHY.overview, ...change } };
}

/** All findings of the checks: level and id, then the messages. */
export function complaints(facts: Facts): string[] {
  return runChecks(CHECKS, facts)
    .filter(({ level }) => level !== "ok")
    .map(complaintOf);
}

function complaintOf({ level, id, findings }: CheckResult): string {
  const messages = findings.filter((finding) => finding.level !== "ok").map(({ message }) => message);
  return `${level} ${id}: ${messages.join(" | ")}`;
}
