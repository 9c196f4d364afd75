import assert from "node:assert/strict";
import { test } from "node:test";
import { NODE_NAME } from "../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { fenceExplainer } from "../../../src/cli/explain/fence.ts";
import type { FenceStep } from "../../../src/cli/explain/fence.ts";
import type { NodeExplanation } from "../../../src/cli/explain/words.ts";
import type { Overview } from "../../../src/cli/status/objects/read.ts";
import { node } from "./dashboard/fixture.ts";
import { AT, OVERVIEW as EMPTY } from "./overview-fixture.ts";

const OVERVIEW: Overview = { ...EMPTY, nodes: [node("n1")] };

function fenceSteps(overview: Overview, name: string, checks: readonly NodeExplanation[]): FenceStep[] {
  return fenceExplainer(overview)(name, checks).steps;
}

function target(namespace: string, ready: { status: "True" | "False"; reason: string }, maintenance = false) {
  const object: FencingTarget = {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { namespace, name: "t1", uid: "u1", resourceVersion: "1" },
    spec: { nodeName: "n1", maintenance, identity: { verification: "Required" }, devices: [] },
    status: {
      lastProbeTime: AT,
      conditions: [{ type: "Ready", ...ready, message: "reported", lastTransitionTime: AT }],
    },
  };
  return object;
}

function remediation(reason: string): BareMetalRemediation {
  const conditions = [
    { type: "Processing", status: "True" as const, reason, message: "reported", lastTransitionTime: AT },
  ];
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ironfence-system", name: "n1", uid: "r1", resourceVersion: "1" },
    spec: {},
    status: { phase: "Resolving", conditions },
  } as unknown as BareMetalRemediation;
}

const check = (outcome: string): NodeExplanation[] => [
  { healthCheck: "workers", selected: true, outcome, reason: "why", actions: [], reasons: [] },
];

const blockingIn = (steps: readonly FenceStep[]): string[] =>
  steps.filter(({ state }) => state === "blocks").map(({ step }) => step);

test("the causes that hold a fence back are named in the order in which they apply", () => {
  const steps = fenceSteps(
    {
      ...OVERVIEW,
      agent: { state: "none", message: "no agent leads" },
      targets: [target("ironfence-system", { status: "False", reason: "Maintenance" }, true)],
      remediations: [remediation("WaitingForTurn")],
      stopSwitch: { paused: true, reason: "paused by ann" },
    },
    "n1",
    check("threshold"),
  );
  assert.deepEqual(
    steps.map(({ step }) => step),
    ["agent", "health check", "remediation", "target", "maintenance", "pause", "admission"],
  );
  assert.deepEqual(blockingIn(steps), ["agent", "maintenance", "pause", "admission"]);
  assert.match(steps.at(4)?.found ?? "", /is true: set it to false/, "when it began is not known");
  assert.match(steps.at(5)?.found ?? "", /^paused by ann: end it with ironfence resume$/);
});

test("a node that nothing keeps from being fenced passes every step", () => {
  const targets = [target("ironfence-system", { status: "True", reason: "Usable" })];
  assert.deepEqual(blockingIn(fenceSteps({ ...OVERVIEW, targets }, "n1", check("create"))), []);
});

test("a health check that does not start anything holds, and so does a node that none covers", () => {
  const targets = [target("ironfence-system", { status: "True", reason: "Usable" })];
  for (const checks of [check("threshold"), []]) {
    assert.deepEqual(blockingIn(fenceSteps({ ...OVERVIEW, targets }, "n1", checks)), ["health check"]);
  }
});

test("a health check that finds the node healthy is idle, and holds nothing", () => {
  const targets = [target("ironfence-system", { status: "True", reason: "Usable" })];
  const steps = fenceSteps({ ...OVERVIEW, targets }, "n1", check("healthy"));
  assert.equal(steps.find(({ step }) => step === "health check")?.state, "idle");
  assert.deepEqual(blockingIn(steps), []);
});

test("a target that is not ready, is missing, or lies in another namespace holds, and the last is named", () => {
  const notReady = [target("ironfence-system", { status: "False", reason: "AuthenticationFailed" })];
  const stray = [target("default", { status: "True", reason: "Usable" })];
  const found = (overview: Partial<Overview>): string =>
    fenceSteps({ ...OVERVIEW, ...overview }, "n1", check("create")).find(({ state }) => state === "blocks")?.found ??
    "";
  assert.equal(found({ targets: notReady }), "FencingTarget ironfence-system/t1: AuthenticationFailed: reported");
  assert.match(found({}), /^no FencingTarget in namespace ironfence-system names the node: create one/);
  assert.match(found({ strayTargets: stray }), /; the one in namespace default is not used: create one/);
});

test("a check that may not be read is unknown, not ok", () => {
  const problem = { problem: "403" };
  const steps = fenceSteps(
    { ...OVERVIEW, targets: problem, remediations: problem, stopSwitch: problem },
    "n1",
    check("create"),
  );
  assert.deepEqual(
    steps.filter(({ state }) => state === "unknown").map(({ step }) => step),
    ["remediation", "target", "pause"],
  );
});

test("the remediation that runs is shown, the youngest of several, and not one that has ended", () => {
  const seconds = (found: number): string => `2026-01-01T00:00:0${found}Z`;
  const made = (name: string, second: number, succeeded: "True" | "False" | "Unknown"): BareMetalRemediation => {
    const running = remediation(name);
    const ended = { type: "Succeeded", status: succeeded, reason: name, message: "reported", lastTransitionTime: AT };
    return {
      ...running,
      metadata: { ...running.metadata, name, creationTimestamp: seconds(second), annotations: { [NODE_NAME]: "n1" } },
      status: { ...running.status, conditions: [...(running.status?.conditions ?? []), ended] },
    };
  };
  const found = (...remediations: BareMetalRemediation[]): string | undefined =>
    fenceSteps({ ...OVERVIEW, remediations }, "n1", check("create"))
      .find(({ step }) => step === "remediation")
      ?.found.replace(/^BareMetalRemediation ironfence-system\/(\w+): .*$/, "$1");
  assert.equal(found(made("failed", 3, "False"), made("running", 1, "Unknown"), made("done", 2, "True")), "running");
  assert.equal(found(made("older", 1, "Unknown"), made("younger", 2, "Unknown")), "younger");
  assert.equal(found(made("first", 1, "False"), made("last", 2, "False")), "last");
});
