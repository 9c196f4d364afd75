import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import type { ClusterFacts, StrategyType } from "../../../src/cli/fence/preview.ts";
import { previewFence } from "../../../src/cli/fence/preview.ts";

const CONTROL_PLANE = { "node-role.kubernetes.io/control-plane": "" };

function node(name: string, ready: boolean, labels: Record<string, string> = {}): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, uid: name, resourceVersion: "1", labels },
    spec: {},
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "Unknown" }] },
  };
}

function remediation(nodeName: string, succeeded?: "True" | "False" | "Unknown"): BareMetalRemediation {
  const condition = { type: "Succeeded", reason: "R", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ironfence", name: nodeName, uid: nodeName, resourceVersion: "1" },
    spec: {} as BareMetalRemediation["spec"],
    status: succeeded === undefined ? {} : { conditions: [{ ...condition, status: succeeded }] },
  };
}

function facts(changes: Partial<ClusterFacts> & { obstacles?: string[]; paused?: string } = {}): ClusterFacts {
  const { obstacles = [], paused, ...rest } = changes;
  const subject = rest.node ?? node("w1", false);
  const target = {} as FencingTarget;
  return {
    node: subject,
    target: { target, directory: {} as ClusterFacts["target"]["directory"], node: subject, obstacles, paused },
    remediations: [],
    controlPlane: [],
    leaseHolder: undefined,
    ...rest,
  };
}

const obstaclesOf = (changes: Parameters<typeof facts>[0], strategy: StrategyType = "Reboot") =>
  previewFence(facts(changes), strategy).obstacles;
const concernsOf = (changes: Parameters<typeof facts>[0], strategy: StrategyType = "Reboot") =>
  previewFence(facts(changes), strategy).concerns;

describe("a fence by hand", () => {
  it("a fence by hand goes without a question for a worker that is not Ready", () => {
    assert.deepEqual(obstaclesOf({}), []);
    assert.deepEqual(concernsOf({}), []);
  });

  it("a fence by hand asks before a node that is Ready, that runs the control plane, or whose disks are erased", () => {
    assert.match(concernsOf({ node: node("w1", true) })[0] ?? "", /is Ready/);
    assert.match(concernsOf({ node: node("c1", false, CONTROL_PLANE) })[0] ?? "", /control plane/);
    assert.match(concernsOf({}, "Reprovision")[0] ?? "", /^the host boots from the network .* is lost/);
    assert.match(concernsOf({}, "Escalate")[0] ?? "", /^if reboots do not help/);
  });

  it("a fence by hand is refused by the pause, by an obstacle of the target, by label and by a lease of another agent", () => {
    assert.match(obstaclesOf({ paused: "ironfence is paused (x)" })[0] ?? "", /paused .*ironfence resume/);
    assert.deepEqual(obstaclesOf({ obstacles: ["the target is in maintenance"] }), ["the target is in maintenance"]);
    const excluded = node("w1", false, { "remediation.medik8s.io/exclude-from-remediation": "true" });
    assert.match(obstaclesOf({ node: excluded })[0] ?? "", /exclude-from-remediation=true/);
    assert.match(
      obstaclesOf({ leaseHolder: "node-maintenance" })[0] ?? "",
      /node-maintenance holds the remediation lease/,
    );
  });

  it("a fence by hand is refused while a remediation of the node is under way, and not by one that has ended", () => {
    assert.match(obstaclesOf({ remediations: [remediation("w1")] })[0] ?? "", /already remediates it/);
    assert.equal(obstaclesOf({ remediations: [remediation("w1", "Unknown")] }).length, 1);
    const ended = [remediation("w1", "True"), remediation("w1", "False"), remediation("w2")];
    assert.deepEqual(obstaclesOf({ remediations: ended }), []);
  });

  it("a fence by hand takes one control plane node at a time, and refuses a node that the quorum needs", () => {
    const dead = node("c1", false, CONTROL_PLANE);
    const alive = node("c2", true, CONTROL_PLANE);
    const other = node("c3", true, CONTROL_PLANE);
    const controlPlane = [dead, alive, other];
    assert.deepEqual(obstaclesOf({ node: dead, controlPlane }), []);
    assert.match(obstaclesOf({ node: alive, controlPlane })[0] ?? "", /control plane node c1 is not/);
    const busy = { node: dead, controlPlane, remediations: [remediation("c3")] };
    assert.match(obstaclesOf(busy)[0] ?? "", /fences another control plane node/);
    assert.deepEqual(obstaclesOf({ ...busy, remediations: [remediation("w9")] }), []);
  });
});
