import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { explainCheck, explainNode, formatSeconds, formatTime } from "../../../src/cli/explain/words.ts";
import { staticView } from "../../../src/cli/cluster/static-view.ts";
import { SKIP_DURATION_IF_OFF } from "../../../src/api/names/annotations.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import type { NodeFacts, NodeCheckSnapshot } from "../../../src/detector/nodes/decide/decision.ts";
import type { EvaluatedNodeChecks } from "../../../src/detector/nodes/evaluate-once.ts";
import { decideNodeCheck, decideInvalid } from "../../../src/detector/nodes/decide/decide.ts";
import type { ObservedHost } from "../../../src/detector/shared/model/observed-host.ts";
import { toTime } from "../../../src/runtime/time.ts";
import {
  escalation,
  factsOf,
  nodeOf,
  policyOf,
  remediationOf,
  hostOf,
  snapshotOf,
  T0,
} from "../detector/nodes/builders.ts";

function checkOf(snapshot: NodeCheckSnapshot | undefined) {
  const metadata = { name: "check", uid: "check-1", resourceVersion: "1" };
  const check = { apiVersion: "v1", kind: "NodeHealthCheck", metadata, spec: {}, status: snapshot?.status ?? {} };
  const decision =
    snapshot === undefined ? decideInvalid({}, "spec.selector: is empty", T0) : decideNodeCheck(snapshot, T0);
  return { check, snapshot, decision };
}

function liveOf(nodes: Node[], snapshot: NodeCheckSnapshot | undefined): EvaluatedNodeChecks {
  return { nowMs: T0, nodes: staticView(nodes), checks: [checkOf(snapshot)] };
}

function explain(nodes: Node[], facts: NodeFacts[], more: Partial<NodeCheckSnapshot> = {}, spec = {}) {
  const found = explainNode(liveOf(nodes, snapshotOf(policyOf(spec), facts, more)), "n1")?.[0];
  assert.ok(found);
  const said = new Map(found.reasons.map(({ what, found: words }) => [what, words]));
  return { ...found, said };
}

describe("an explanation", () => {
  it("an explanation reports durations and times as users write them", () => {
    assert.deepEqual([0, 1_000, 60_000, 90_000, 3_600_000, 5_430_000].map(formatSeconds), [
      "0s",
      "1s",
      "1m",
      "1m30s",
      "1h",
      "1h30m30s",
    ]);
    assert.match(formatTime(toTime(T0 + 5_000), T0), /Z \(in 5s\)$/);
    assert.match(formatTime(toTime(T0 - 5_000), T0), /Z \(5s ago\)$/);
  });

  it("an explanation shows each condition as the node reports it, together with what the health check requires", () => {
    const policy = policyOf();
    const unhealthy = nodeOf("n1", "Unknown", T0 - 20_000);
    const { outcome, said, actions } = explain([unhealthy], [factsOf(policy, unhealthy, T0)]);
    assert.equal(outcome, "create");
    assert.equal(said.get("Ready=Unknown for 10s"), `Unknown since ${toTime(T0 - 20_000)}`);
    assert.equal(said.get("Ready=False for 10s"), `Unknown since ${toTime(T0 - 20_000)}`);
    assert.equal(actions.length, 1);

    const bare: Node = { ...unhealthy, status: {} };
    assert.equal(explain([bare], []).said.get("Ready=False for 10s"), "the node has no condition Ready");
    const timeless: Node = { ...unhealthy, status: { conditions: [{ type: "Ready", status: "Unknown" }] } };
    assert.equal(explain([timeless], []).said.get("Ready=Unknown for 10s"), "Unknown without a time");
  });

  it("an explanation shows what the host reads if the health check asks, and the proof or the objection that decide acts on", () => {
    const failed = nodeOf("n1", "Unknown", T0 - 5_000);
    const policy = policyOf({}, { [SKIP_DURATION_IF_OFF]: "true" });
    const under = (host: ObservedHost) => {
      const snapshot = snapshotOf(policy, [factsOf(policy, failed, T0, { host })]);
      const [found] = explainNode(liveOf([failed], snapshot), "n1") ?? [];
      return [
        found?.outcome,
        found?.reasons.find(({ what }) => what === "host")?.found,
        found?.reason,
        found?.actions[0],
      ];
    };
    const proof = `FencingTarget fencing/t1 read its host Off twice in a row, at ${toTime(T0 - 1_000)}`;
    const [create, reads, , action = ""] = under(hostOf(failed));
    assert.deepEqual(
      [create, reads],
      ["create", `FencingTarget fencing/t1 reads Off, proven off at ${toTime(T0 - 1_000)}`],
    );
    assert.ok(action.includes(`before the duration is over, because ${proof}`), action);
    const [soon, stopped, reason = ""] = under(hostOf(failed, { stopped: "paused" }));
    assert.deepEqual([soon, stopped], ["soonUnhealthy", "paused"]);
    assert.match(reason, /; not earlier, because paused$/);
    assert.equal(explain([failed], [factsOf(policyOf(), failed, T0)]).said.get("host"), undefined);
  });

  it("an explanation counts nodes as decide did, also if a live list has fewer healthy ones than the view", () => {
    const policy = policyOf({ minHealthy: 2 });
    const node = nodeOf("n1", "Unknown", T0 - 20_000);
    const liveCounts = { selected: 3, healthy: 0, absent: 0 };
    const snapshot = snapshotOf(policy, [factsOf(policy, node, T0)], { liveCounts });
    const { gate, reasons } = explainCheck(checkOf(snapshot));
    assert.match(gate?.reason ?? "", /healthy nodes selected by the selector is 0 /);
    assert.match(reasons.find(({ what }) => what === "threshold")?.found ?? "", /^0 of 3 are healthy; /);
  });

  it("an explanation gives each node the time at which its own answer changes", () => {
    const policy = policyOf();
    const [first, second] = [nodeOf("n1", "Unknown", T0 - 4_000), nodeOf("n2", "Unknown", T0 - 8_000)];
    const facts = [factsOf(policy, first, T0), factsOf(policy, second, T0)];
    assert.equal(explain([first, second], facts).nextCheck, toTime(T0 + 6_000));
    const ofCheck = explainCheck(checkOf(snapshotOf(policy, facts)));
    assert.equal(ofCheck.nextCheck, toTime(T0 + 2_000));
    assert.deepEqual(
      ofCheck.nodes.map(({ name, nextCheck }) => [name, nextCheck]),
      [
        ["n1", toTime(T0 + 6_000)],
        ["n2", toTime(T0 + 2_000)],
      ],
    );
  });

  it("an explanation shows the attempts so far, and the timeout of the one under way", () => {
    const spec = escalation("X", "Y");
    const policy = policyOf(spec);
    const node = nodeOf("n1", "Unknown", T0 - 200_000);
    const resource = { apiVersion: "fence.example/v1", namespace: "fencing", name: "n1" };
    const records = [
      {
        resource: { ...resource, kind: "X", uid: "X-n1" },
        started: toTime(T0 - 90_000),
        timedOut: toTime(T0 - 30_000),
      },
      { resource: { ...resource, kind: "Y", uid: "Y-n1" }, started: toTime(T0 - 30_000) },
    ];
    const facts = factsOf(policy, node, T0, {
      previous: { name: "n1", remediations: records },
      remediations: [remediationOf("n1", { kind: "Y", createdMs: T0 - 30_000 })],
    });
    const { outcome, reasons, nextCheck } = explain([node], [facts], {}, spec);
    assert.equal(outcome, "remediating");
    assert.equal(nextCheck, toTime(T0 + 30_000));
    assert.deepEqual(
      reasons.filter(({ what }) => what === "attempt").map(({ found }) => found),
      [
        `X n1 started ${toTime(T0 - 90_000)}, gave up at ${toTime(T0 - 30_000)}`,
        `Y n1 started ${toTime(T0 - 30_000)}, with a timeout of 1m`,
      ],
    );
  });

  it("an explanation names the other control plane node, the other health check and the holder of the lease", () => {
    const policy = policyOf();
    const node = nodeOf("n1", "Unknown", T0 - 20_000, { "node-role.kubernetes.io/control-plane": "" });
    const deferral = { reason: "node lease is already taken by x", untilMs: T0 + 60_000, cause: "lease" as const };
    const facts = factsOf(policy, node, T0, { peerCheck: "NodeHealthCheck old is remediating it", deferral });
    const { said } = explain([node], [facts], { controlPlaneBusy: ["cp2"] });
    assert.equal(said.get("control plane"), "cp2 in remediation");
    assert.equal(said.get("other check"), "NodeHealthCheck old is remediating it");
    assert.equal(said.get("held back"), `node lease is already taken by x, until ${toTime(T0 + 60_000)}`);
  });

  it("an explanation describes a node that is gone as long as something of it is left", () => {
    const left = { remediations: [remediationOf("n1")] };
    const gone = { ...factsOf(policyOf(), nodeOf("n1", "True", T0), T0, left), node: undefined, selected: false };
    const { outcome, said, actions } = explain([], [gone]);
    assert.deepEqual([outcome, said.get("node"), actions[0]], ["nodeGone", "it does not exist", "delete X n1"]);
    assert.equal(explainNode(liveOf([], snapshotOf(policyOf(), [])), "n1"), undefined);
  });

  it("an explanation says what is wrong with a spec that cannot be understood", () => {
    const node = nodeOf("n1", "Unknown", T0 - 20_000);
    assert.deepEqual(
      explainNode(liveOf([node], undefined), "n1")?.map(({ outcome, reason }) => [outcome, reason]),
      [["disabled", "spec.selector: is empty"]],
    );
    assert.equal(explainCheck(checkOf(undefined)).gate?.reason, "spec.selector: is empty");
  });
});
