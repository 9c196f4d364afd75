import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { INVALID_NODE_CHECK, NODE_CHECK } from "../../../../src/detector/nodes/decide/deciders.ts";
import type { NodeCheckSnapshot, NodeFacts } from "../../../../src/detector/nodes/decide/decision.ts";
import { wholeDecider } from "../../../../src/detector/shared/model/decider.ts";
import { CheckDecisions } from "../../../../src/detector/shared/shell/check-decisions.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import { PURE_FUNCTIONS } from "../../../../src/cli/agent/pure-functions.ts";
import { DecisionRecorder } from "../../../../src/telemetry/decisions/recorder.ts";
import { Replayer } from "../../../../src/telemetry/decisions/replay.ts";
import { factsOf, nodeOf, policyOf, snapshotOf, T0, templatesOf } from "../nodes/builders.ts";

const POLICY = policyOf();

function checkOf(uid: string): KubeObject {
  return {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: { name: "all", uid, resourceVersion: "1" },
  };
}

function log() {
  const lines: string[] = [];
  const write = (line: string): boolean => lines.push(line.trimEnd()) > 0;
  const decisions = new CheckDecisions(new DecisionRecorder({ process: "p", write }));
  const decide = (uid: string, nodes: NodeFacts[], more: Partial<NodeCheckSnapshot> = {}): unknown =>
    decisions.decide(checkOf(uid), NODE_CHECK, snapshotOf(POLICY, nodes, more), T0);
  const replay = (): Replayer["result"] => {
    const replayer = new Replayer(PURE_FUNCTIONS);
    lines.every((line) => replayer.take(line));
    return replayer.result;
  };
  return { lines, decisions, decide, replay };
}

function unhealthy(name: string, more: Partial<NodeFacts> = {}): NodeFacts {
  return factsOf(POLICY, nodeOf(name, "Unknown", T0 - 400_000), T0, more);
}

describe("the decisions about health checks", () => {
  it("decisions about a health check are recorded, and made again the same from the log", () => {
    const { decide, decisions, lines, replay } = log();
    decide("u1", [unhealthy("a"), unhealthy("b")]);
    decide("u1", [unhealthy("b")]);
    const invalid = { status: {}, generation: 2, problem: "spec.selector: no" };
    decisions.decide(checkOf("u1"), INVALID_NODE_CHECK, invalid, T0);
    decide("u1", [unhealthy("b"), unhealthy("a")]);
    const { difference, decisions: made, sessions } = replay();
    assert.deepEqual([difference, made, sessions], [undefined, 4, 1]);
    assert.match(lines[1] ?? "", /"name":"NodeHealthCheck all"/);
  });

  it("decisions are recorded without the spec of another vendor's template, which may hold a password", () => {
    const { decide, lines, replay } = log();
    const [template] = templatesOf(POLICY);
    assert.ok(template !== undefined);
    const remediationSpec = { sharedparameters: { "--password": "hunter2" } };
    decide("u1", [unhealthy("a", { leaseRenewAtMs: undefined })], { templates: [{ ...template, remediationSpec }] });
    assert.match(lines.join(""), /"actions":\[\{"type":"create"/);
    assert.doesNotMatch(lines.join(""), /hunter2/);
    assert.equal(replay().difference, undefined);
  });

  it("decisions about many nodes repeat no node that has not changed since the last one", () => {
    const { decide, lines } = log();
    const nodes = ["a", "b", "c"].map((name) => unhealthy(name));
    decide("u1", nodes);
    decide("u1", [...nodes.slice(0, 2), unhealthy("c", { skew: "its clock is wrong" })]);
    const { changed } = JSON.parse(lines.at(-1) ?? "");
    assert.deepEqual(Object.keys(changed), ["nodes/c"]);
  });

  it("decisions about a health check that was made again, or is forgotten, begin a session of their own", () => {
    const { decide, decisions, replay } = log();
    decide("u1", [unhealthy("a")]);
    decide("u2", [unhealthy("a")]);
    decisions.forget("all");
    decide("u2", [unhealthy("a")]);
    const { difference, sessions } = replay();
    assert.deepEqual([difference, sessions], [undefined, 3]);
  });

  it("decisions are not prepared for a log if none is written", () => {
    const fail = (): never => assert.fail("the input was taken apart");
    const decider = {
      ...wholeDecider("x", ({ given }: { given: number }) => given + 1),
      fieldsOf: fail,
      recorded: fail,
    };
    assert.equal(new CheckDecisions(undefined).decide(checkOf("u1"), decider, { given: 6 }, T0), 7);
  });
});
