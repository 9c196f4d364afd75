import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { REMEDIATION_ATTEMPTS } from "../../../../src/api/names/annotations.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { Condition } from "../../../../src/api/schema/meta.ts";
import type { NodeHealthCheck } from "../../../../src/api/ironfence/node-health-check.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../../src/api/names/labels.ts";
import { runChecks } from "../../../../src/cli/check/check.ts";
import type { Level } from "../../../../src/cli/check/check.ts";
import { CHECKS } from "../../../../src/cli/check/lines/checks.ts";
import { nodePage } from "../../../../src/cli/dashboard/view/node-page.ts";
import { overviewPage } from "../../../../src/cli/dashboard/view/overview-page.ts";
import { renderNodePage } from "../../../../src/cli/dashboard/render/node.ts";
import { renderOverviewPage } from "../../../../src/cli/dashboard/render/overview.ts";
import { fenceExplainer } from "../../../../src/cli/explain/fence.ts";
import { problemsOf } from "../../../../src/cli/status/problems.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { renderOverview } from "../../../../src/cli/status/render.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { HEALTHY as HEALTHY_FACTS } from "../check/facts-fixture.ts";
import { healthCheck, node, remediation, target } from "../dashboard/fixture.ts";
import { AT, OVERVIEW } from "../overview-fixture.ts";

// The page, `ironfence status`, `ironfence check` and `ironfence explain node` answer one question: could this node be
// fenced now? For each fault, all four must give the same answer with the same reason.

const NAMES = ["w1", "w2", "w3"];
const HEALTHY: Overview = {
  ...OVERVIEW,
  nodes: NAMES.map((name) => node(name)),
  targets: NAMES.map((name) => target(name)),
  healthChecks: [healthCheck()],
};
const NOW_MS = OVERVIEW.nowMs;
const FORBIDDEN = { problem: "list things: 403 Forbidden" };
const CONTROL_PLANE = { "node-role.kubernetes.io/control-plane": "" };
const [, W2, W3] = NAMES.map((name) => node(name));
const others = [W2, W3].flatMap((found) => found ?? []);
const otherTargets = [target("w2"), target("w3")];
const condition = (type: string, status: Condition["status"], reason: string): Condition => ({
  type,
  status,
  reason,
  message: "said",
  lastTransitionTime: AT,
});

/** The node w1, which has been Unknown since `longerMs` before its health check should have started a remediation. */
function unhealthy(longerMs: number): Node {
  const lastTransitionTime = toTime(NOW_MS - 300_000 - longerMs);
  return { ...node("w1"), status: { conditions: [{ type: "Ready", status: "Unknown", lastTransitionTime }] } };
}
const SOON_MS = 30_000;
const LONG_MS = 90_000;

function checkWith(change: {
  annotations?: Record<string, string>;
  status?: NodeHealthCheck["status"];
  spec?: object;
}) {
  const { metadata, spec, ...rest } = healthCheck(change.status);
  const annotations = change.annotations ?? {};
  return { ...rest, metadata: { ...metadata, annotations }, spec: { ...spec, ...change.spec } };
}

/** A node of Cluster API with its Machine, under a MachineHealthCheck of a cluster. */
function machineCheck(clusterName: string, conditions: readonly Condition[] = []): Partial<Overview> {
  const annotations = { "cluster.x-k8s.io/machine": "m1", "cluster.x-k8s.io/cluster-namespace": "c" };
  const labels = { "cluster.x-k8s.io/cluster-name": "own", pool: "workers" };
  const object = (kind: string, name: string, more: object): KubeObject => ({
    apiVersion: "cluster.x-k8s.io/v1beta1",
    kind,
    metadata: { namespace: "c", name, uid: `uid-${name}`, resourceVersion: "1", labels },
    ...more,
  });
  const w1 = node("w1");
  const spec = { clusterName, selector: { matchLabels: { pool: "workers" } } };
  return {
    nodes: [{ ...w1, metadata: { ...w1.metadata, annotations } }, ...others],
    healthChecks: [],
    machineHealthChecks: [object("MachineHealthCheck", "mhc", { spec, status: { conditions } })],
    machines: [object("Machine", "m1", { spec: { clusterName: "own" }, status: { nodeRef: { name: "w1" } } })],
  };
}

/** A BareMetalHost that belongs to the node w1 by its name. */
const BARE_METAL_HOST: KubeObject = {
  apiVersion: "metal3.io/v1alpha1",
  kind: "BareMetalHost",
  metadata: { namespace: "metal3", name: "w1", uid: "uid-h", resourceVersion: "1" },
  spec: { online: true },
  status: { provisioning: { state: "provisioned" }, operationalStatus: "OK", poweredOn: true },
} as KubeObject;

interface Fault {
  change: Partial<Overview>;
  /** Answer and reason for the node w1. */
  verdict: string;
  /**
   * The level of the line `could-fence`. It is not a failure if an administrator wants the state, so that a check after
   * an upgrade passes.
   */
  level: Level;
}

const { agent } = OVERVIEW;
const attempts = Array.from({ length: 10 }, (_, index) => `r${index}@${toTime(NOW_MS - index * 60_000)}`).join(",");
const failed = remediation("w1", "Failed", "", { conditions: [condition("Succeeded", "False", "PowerOffTimeout")] });
const served = { ...agent, families: ["node-health-check", "bare-metal-host"] } as Overview["agent"];
const hidden = { ...agent, families: ["node-health-check"] } as Overview["agent"];
const controlPlane = (...ready: string[]): Partial<Overview> => ({
  nodes: [node("w9"), ...ready.map((is, index) => node(`w${index + 1}`, is, CONTROL_PLANE))],
  targets: [target("w9"), target("w1"), ...otherTargets],
});

const FAULTS: Readonly<Record<string, Fault>> = {
  "nothing is wrong": { change: {}, verdict: "yes", level: "ok" },
  "the attempt budget is used up": {
    change: {
      healthChecks: [checkWith({ annotations: { [REMEDIATION_ATTEMPTS]: JSON.stringify({ w1: attempts }) } })],
    },
    verdict: "no AttemptBudgetSpent",
    level: "failed",
  },
  "a failed remediation is left behind": {
    change: { remediations: [failed] },
    verdict: "no PowerOffTimeout",
    level: "failed",
  },
  "a remediation cannot reach the BMC": {
    change: { remediations: [remediation("w1", "PoweringOff", "BMCTimeout")] },
    verdict: "no BMCTimeout",
    level: "failed",
  },
  "a remediation waits for admission": {
    change: { remediations: [remediation("w1", "Resolving", "WaitingForTurn")] },
    verdict: "no WaitingForTurn",
    level: "warning",
  },
  "a MachineHealthCheck may not remediate": {
    change: machineCheck("own", [condition("RemediationAllowed", "False", "TooManyUnhealthy")]),
    verdict: "no TooManyUnhealthy",
    level: "failed",
  },
  "a MachineHealthCheck covers the node": { change: machineCheck("own"), verdict: "yes", level: "ok" },
  "a MachineHealthCheck is for another cluster": {
    change: machineCheck("other"),
    verdict: "yes NoHealthCheck",
    level: "ok",
  },
  "the caller is not allowed to list Machines": {
    change: { ...machineCheck("own"), machines: FORBIDDEN },
    verdict: "unknown HealthChecksUnread",
    level: "failed",
  },
  "the node has the label to exclude it": {
    change: { nodes: [node("w1", "True", { [EXCLUDE_FROM_REMEDIATION]: "true" }), ...others] },
    verdict: "no Excluded",
    level: "warning",
  },
  "the last probe is 90 days old": {
    change: {
      targets: [target("w1", { status: { lastProbeTime: toTime(NOW_MS - 90 * 86_400_000) } }), ...otherTargets],
    },
    verdict: "unknown ProbeOld",
    level: "failed",
  },
  "the condition Ready is of an older generation": {
    change: { targets: [target("w1", { observed: 1 }), ...otherTargets] },
    verdict: "unknown NotProbed",
    level: "failed",
  },
  "the target was never probed": {
    change: { targets: [target("w1", { status: { conditions: [] } }), ...otherTargets] },
    verdict: "unknown NotProbed",
    level: "failed",
  },
  "the BMC refuses the password": {
    change: { targets: [target("w1", { reason: "AuthenticationFailed" }), ...otherTargets] },
    verdict: "no AuthenticationFailed",
    level: "failed",
  },
  "a covered node has no target": {
    change: { targets: otherTargets },
    verdict: "no NoTarget",
    level: "failed",
  },
  "a node without a target is covered by no health check": {
    change: { targets: otherTargets, healthChecks: [] },
    verdict: "no NoTarget",
    level: "warning",
  },
  "the node has a BareMetalHost, and its family is not chosen": {
    change: { targets: otherTargets, bareMetalHosts: [BARE_METAL_HOST], agent: hidden },
    verdict: "no NoTarget",
    level: "failed",
  },
  "the node has a BareMetalHost, and its family is chosen": {
    change: { targets: otherTargets, bareMetalHosts: [BARE_METAL_HOST], agent: served },
    verdict: "yes",
    level: "ok",
  },
  "the caller is not allowed to list targets": {
    change: { targets: FORBIDDEN },
    verdict: "unknown TargetsUnread",
    level: "failed",
  },
  "the caller is not allowed to list remediations": {
    change: { remediations: FORBIDDEN },
    verdict: "unknown RemediationsUnread",
    level: "failed",
  },
  "the host is in maintenance": {
    change: { targets: [target("w1", { maintenance: true }), ...otherTargets] },
    verdict: "no Maintenance",
    level: "warning",
  },
  "ironfence is paused": {
    change: { stopSwitch: { paused: true, reason: "paused by ann" } },
    verdict: "no Paused",
    level: "warning",
  },
  "no agent leads": {
    change: { agent: { state: "none", message: "no agent leads" } },
    verdict: "no NoAgent",
    level: "failed",
  },
  "the leader lacks a permission": {
    change: { agent: { ...agent, notReady: "may not list nodes" } as Overview["agent"] },
    verdict: "no NotReady",
    level: "failed",
  },
  "the health check is disabled": {
    change: {
      healthChecks: [healthCheck({ conditions: [condition("Disabled", "True", "RemediationTemplateNotFound")] })],
    },
    verdict: "no RemediationTemplateNotFound",
    level: "failed",
  },
  "the selector of the health check is not valid": {
    change: {
      healthChecks: [
        checkWith({ spec: { selector: { matchExpressions: [{ key: "pool", operator: "In", values: [] }] } } }),
      ],
    },
    verdict: "no SpecInvalid",
    level: "failed",
  },
  "a duration of the health check is not valid": {
    change: {
      healthChecks: [
        checkWith({ spec: { unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "soon" }] } }),
      ],
    },
    verdict: "no SpecInvalid",
    level: "failed",
  },
  "a health check for other nodes is not valid": {
    change: {
      healthChecks: [checkWith({ spec: { selector: { matchLabels: { pool: "others" } }, healthyDelay: "soon" } })],
    },
    verdict: "yes NoHealthCheck",
    level: "ok",
  },
  "a health check is not valid, and another one covers the node": {
    change: { healthChecks: [checkWith({ spec: { selector: {} } }), healthCheck()] },
    verdict: "yes",
    level: "ok",
  },
  "a health check has started no remediation of a node that is unhealthy for long": {
    change: { nodes: [unhealthy(LONG_MS), ...others] },
    verdict: "no NotStarted",
    level: "failed",
  },
  "a node is unhealthy for a moment": {
    change: { nodes: [unhealthy(SOON_MS), ...others] },
    verdict: "yes",
    level: "ok",
  },
  "a remediation of a node that is unhealthy is under way": {
    change: { nodes: [unhealthy(LONG_MS), ...others], remediations: [remediation("w1", "PoweringOff", "PoweringOff")] },
    verdict: "yes",
    level: "ok",
  },
  "another project remediates a node that is unhealthy": {
    change: {
      nodes: [unhealthy(LONG_MS), ...others],
      healthChecks: [healthCheck({ unhealthyNodes: [{ name: "w1", remediations: [{ resource: {}, started: AT }] }] })],
    },
    verdict: "yes",
    level: "ok",
  },
  "the health check is paused": {
    change: { healthChecks: [healthCheck({ phase: "Paused", reason: "by ann" })] },
    verdict: "no PauseRequested",
    level: "warning",
  },
  "too few nodes are healthy": {
    change: { healthChecks: [checkWith({ spec: { minHealthy: 2 }, status: { healthyNodes: 2 } })] },
    verdict: "no ThresholdHolds",
    level: "failed",
  },
  "the threshold lets no single node be remediated": {
    change: { healthChecks: [checkWith({ spec: { minHealthy: "100%" } })] },
    verdict: "no ThresholdTooHigh",
    level: "failed",
  },
  "etcd has one member down of three": {
    change: controlPlane("True", "True", "Unknown"),
    verdict: "no ControlPlaneQuorum",
    level: "failed",
  },
  "etcd has two members": { change: controlPlane("True", "True"), verdict: "no ControlPlaneQuorum", level: "warning" },
  "etcd has one member": { change: controlPlane("True"), verdict: "no ControlPlaneQuorum", level: "warning" },
  "etcd has three members that are up": { change: controlPlane("True", "True", "True"), verdict: "yes", level: "ok" },
};

/** The answers about the node w1, parsed from the output for users. */
function answersOf(overview: Overview): Record<"page" | "page of the node" | "status" | "check" | "explain", string> {
  const { page, nodes } = overviewPage(overview);
  const onPage = nodes.find(({ node: name }) => name === "w1");
  const html = renderOverviewPage(page).text;
  if (onPage !== undefined && onPage.answer !== "yes")
    assert.ok(html.includes(onPage.reason), "the page names the reason");
  const own = nodePage(overview, "w1", { problem: "not asked" });
  assert.ok(own !== undefined);
  const [, answer = "", reason = ""] = />(yes|no|unknown)<\/span>\s*(\w*)/.exec(renderNodePage(own).text) ?? [];
  const explained = fenceExplainer(overview)("w1", []).readiness;
  return {
    page: wordsOf(onPage?.answer, onPage?.reason),
    "page of the node": wordsOf(answer, reason),
    status: lineOf(renderOverview(overview, problemsOf(overview)), /^ {2}(no|unknown): (\w+): (.*)$/),
    check: lineOf(
      findingsOf(overview).map(({ message }) => message),
      /^(no|unknown): (\w+) \(\d+\): ([^:]*):/,
    ),
    explain: wordsOf(explained?.answer, explained?.reason),
  };
}

function findingsOf(overview: Overview) {
  const facts = { ...HEALTHY_FACTS, overview };
  return runChecks(CHECKS, facts).find(({ id }) => id === "could-fence")?.findings ?? [];
}

const wordsOf = (answer = "", reason = ""): string => `${answer} ${reason}`.trim();

/** The line that names w1. If there is none, the answer is yes. */
function lineOf(lines: readonly string[], form: RegExp): string {
  const found = lines.flatMap((line) => {
    const [, answer, reason, names = ""] = form.exec(line) ?? [];
    return names.split(/, | and /).includes("w1") ? [wordsOf(answer, reason)] : [];
  });
  return found.join(" and ") || "yes";
}

describe("the answer for a node", () => {
  for (const [fault, { change, verdict, level }] of Object.entries(FAULTS)) {
    it(`the answer for a node is the same on the page, in status, check and explain if ${fault}`, () => {
      const overview = { ...HEALTHY, ...change };
      // Status and check list only nodes whose answer is not yes.
      const listed = verdict.startsWith("yes") ? "yes" : verdict;
      assert.deepEqual(answersOf(overview), {
        page: verdict,
        "page of the node": verdict,
        status: listed,
        check: listed,
        explain: verdict,
      });
      const line = runChecks(CHECKS, { ...HEALTHY_FACTS, overview }).find(({ id }) => id === "could-fence");
      assert.equal(line?.level, level);
      const problems = problemsOf(overview);
      if (level === "failed")
        assert.ok(problems.some(({ severity }) => severity === "error") || verdict.startsWith("unknown"));
      const isIdle = verdict === "no NoTarget" && level === "warning";
      if (level !== "ok" && !isIdle) assert.ok(problems.length > 0, "status reports a problem");
      if (isIdle) assert.deepEqual(problems, [], "a node that no health check covers is not meant to be fenced");
    });
  }

  it("the answer for a node names a step of explain that does not pass, if it is not a yes", () => {
    for (const { change, verdict } of Object.values(FAULTS)) {
      const { steps, readiness: found } = fenceExplainer({ ...HEALTHY, ...change })("w1", []);
      const state = verdict.startsWith("no ") ? "blocks" : verdict.startsWith("unknown") ? "unknown" : undefined;
      if (state !== undefined) assert.equal(steps.find(({ step }) => step === found?.step)?.state, state, verdict);
    }
  });
});
