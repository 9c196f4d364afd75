import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeHealthCheckStatus } from "../../../src/api/node-health-check.ts";
import type { NodeFacts } from "../../../src/detector/decision.ts";
import { decide, decideInvalid } from "../../../src/detector/plan.ts";
import { toTime } from "../../../src/runtime/time.ts";
import { entryIn, escalation, factsOf, nodeOf, policyOf, remediationOf, snapshotOf, T0, templatesOf } from "./world.ts";

const UNHEALTHY_SINCE = T0 - 60_000;
const CONTROL_PLANE = { "node-role.kubernetes.io/master": "" };

function unhealthy(name: string, more: Partial<NodeFacts> = {}, labels = {}, policy = policyOf()): NodeFacts {
  return factsOf(policy, nodeOf(name, "Unknown", UNHEALTHY_SINCE, labels), T0, more);
}
function outcomes(nodes: NodeFacts[], more: Parameters<typeof snapshotOf>[2] = {}, policy = policyOf()) {
  return Object.fromEntries(
    decide(snapshotOf(policy, nodes, more), T0).nodes.map(({ name, outcome }) => [name, outcome]),
  );
}
const record = (kind: string, name: string, startedMs: number, timedOutMs?: number) => ({
  resource: { apiVersion: "fence.example/v1", kind, namespace: "fencing", name, uid: `${kind}-${name}` },
  started: toTime(startedMs),
  templateName: `${kind.toLowerCase()}-template`,
  ...(timedOutMs !== undefined && { timedOut: toTime(timedOutMs) }),
});

describe("decide: who gets a remediation", () => {
  const excluded = { "remediation.medik8s.io/exclude-from-remediation": "true" };
  const cases: [string, NodeFacts[], Parameters<typeof snapshotOf>[2], Record<string, string>][] = [
    ["an unhealthy node", [unhealthy("a")], {}, { a: "create" }],
    ["none while the view is stale", [unhealthy("a")], { standstill: "no news" }, { a: "standstill" }],
    [
      "none while disabled",
      [unhealthy("a")],
      { templates: { reason: "RemediationTemplateNotFound", message: "m" } },
      { a: "disabled" },
    ],
    ["not an excluded one", [unhealthy("a", {}, excluded)], {}, { a: "excluded" }],
    ["not one that another health check cares for", [unhealthy("a", { rival: "x" })], {}, { a: "rival" }],
    ["not one with a foreign CR", [unhealthy("a")], { isForeign: () => true }, { a: "foreign" }],
    [
      "not one that is held",
      [unhealthy("a", { hold: { reason: "lease", untilMs: T0 + 1, announce: true } })],
      {},
      { a: "held" },
    ],
    [
      "one whose hold is over",
      [unhealthy("a", { hold: { reason: "lease", untilMs: T0, announce: true } })],
      {},
      { a: "create" },
    ],
    [
      "one control plane node of two, the one that has been unhealthy for longer",
      [
        unhealthy("a", {}, CONTROL_PLANE),
        factsOf(policyOf(), nodeOf("b", "Unknown", UNHEALTHY_SINCE - 1_000, CONTROL_PLANE), T0),
        unhealthy("worker"),
      ],
      {},
      { b: "create", a: "controlPlane", worker: "create" },
    ],
    [
      "no control plane node while another one is in remediation",
      [unhealthy("a", {}, CONTROL_PLANE)],
      { controlPlaneBusy: new Set(["z"]) },
      { a: "controlPlane" },
    ],
    [
      "a control plane node that is itself the one in remediation",
      [unhealthy("a", {}, CONTROL_PLANE)],
      { controlPlaneBusy: new Set(["a"]) },
      { a: "create" },
    ],
    ["none that has one", [unhealthy("a", { remediations: [remediationOf("a")] })], {}, { a: "remediating" }],
    [
      "none whose last CR is still being deleted",
      [unhealthy("a", { remediations: [remediationOf("a", { terminating: true })] })],
      {},
      { a: "waiting" },
    ],
  ];
  for (const [name, nodes, more, wanted] of cases) it(name, () => assert.deepEqual(outcomes(nodes, more), wanted));

  it("the same answer to the same question", () => {
    const snapshot = snapshotOf(policyOf(), [unhealthy("a"), unhealthy("b")]);
    assert.deepEqual(decide(snapshot, T0), decide(snapshot, T0));
  });
});

describe("decide: attempts", () => {
  const policy = policyOf(escalation("X", "Y"));
  const at = (facts: Partial<NodeFacts>, status: NodeHealthCheckStatus = {}) =>
    decide(snapshotOf(policy, [unhealthy("a", facts, {}, policy)], { status }), T0);

  it("adopts a CR without a record, with the CR's own time, so that a crash before the record loses nothing", () => {
    const { status } = at({ remediations: [remediationOf("a", { createdMs: T0 - 5_000 })] });
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.started, toTime(T0 - 5_000));
  });

  it("forgets an attempt that was not given up and whose CR is gone", () => {
    const { status } = at({ previous: { name: "a", remediations: [record("X", "a", T0 - 55_000)] } });
    assert.equal(entryIn(status, "a")?.remediations, undefined);
  });

  it("keeps the record of a CR that cannot be seen now", () => {
    const facts = unhealthy("a", { previous: { name: "a", remediations: [record("X", "a", T0)] } }, {}, policy);
    const { status } = decide(snapshotOf(policy, [facts], { canSee: () => false }), T0);
    assert.equal(entryIn(status, "a")?.remediations?.length, 1);
  });

  it("does not count an attempt as given up before its CR is marked, so that the mark is tried again", () => {
    const remediations = [remediationOf("a", { createdMs: T0 - 60_000 })];
    const { actions, status } = at({ remediations });
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["annotate"],
    );
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, undefined);
  });

  it("starts the next step once it is marked", () => {
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) };
    const { actions, status } = at({ remediations: [remediationOf("a", { createdMs: T0 - 61_000, annotations })] });
    assert.deepEqual(
      actions.map((action) => (action.type === "create" ? action.template.type.kind : action.type)),
      ["Y"],
    );
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, toTime(T0 - 1_000));
  });

  it("lets a mark that is no time pass without an unwritable status", () => {
    const annotations = { "remediation.medik8s.io/nhc-timed-out": "now" };
    const { status } = at({ remediations: [remediationOf("a", { annotations })] });
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, undefined);
  });

  it("looks again at the second the time is over", () => {
    const { nextCheckMs } = at({ remediations: [remediationOf("a", { createdMs: T0 - 10_000 })] });
    assert.equal(nextCheckMs, T0 + 50_000);
  });

  it("never gives up a single template, and leaves its failed CR alone", () => {
    const single = policyOf();
    const remediations = [remediationOf("a", { createdMs: T0 - 3_600_000, succeeded: "False" })];
    const { actions } = decide(snapshotOf(single, [unhealthy("a", { remediations })]), T0);
    assert.deepEqual(actions, []);
  });

  it("tries one template twice where it stands twice", () => {
    const twice = policyOf({
      remediationTemplate: undefined,
      escalatingRemediations: [1, 2].map((order) => ({ ...escalation("X").escalatingRemediations[0], order })),
    });
    const previous = { name: "a", remediations: [record("X", "a", T0 - 120_000, T0 - 60_000)] };
    const facts = unhealthy("a", { previous }, {}, twice);
    const { nodes } = decide(snapshotOf(twice, [facts], { templates: templatesOf(twice, true) }), T0);
    assert.deepEqual(nodes[0]?.outcome, "create");
    const spent = [...previous.remediations, record("X", "a2", T0 - 60_000, T0 - 1_000)];
    const over = unhealthy("a", { previous: { name: "a", remediations: spent } }, {}, twice);
    assert.equal(decide(snapshotOf(twice, [over]), T0).nodes[0]?.outcome, "noTemplateLeft");
  });

  it("renews the lease while an attempt is under way, and not after", () => {
    const held = at({ remediations: [remediationOf("a")], leaseRenewAtMs: undefined });
    assert.deepEqual(
      held.actions.map(({ type }) => type),
      ["renewLease"],
    );
  });
});

describe("decide: nodes that are away", () => {
  const policy = policyOf();
  const gone = (options: Parameters<typeof remediationOf>[1]): NodeFacts => ({
    ...unhealthy("a"),
    node: undefined,
    selected: false,
    health: { state: "healthy" },
    remediations: [remediationOf("a", options)],
  });
  const expected = [{ type: "PermanentNodeDeletionExpected", status: "True" }];
  const cases: [string, NodeFacts, string[]][] = [
    ["a deleted node's CR is deleted", gone({}), ["delete"]],
    ["unless its remediator deletes the node", gone({ conditions: expected }), []],
    ["and has not succeeded yet", gone({ conditions: expected, succeeded: "True" }), ["delete"]],
    ["a terminating one is not deleted twice", gone({ terminating: true }), []],
  ];
  for (const [name, facts, wanted] of cases) {
    it(name, () => {
      const { actions } = decide(snapshotOf(policy, [facts]), T0);
      assert.deepEqual(
        actions.map(({ type }) => type),
        wanted,
      );
    });
  }

  it("a relabelled node's CR stays while it is at work", () => {
    const facts = unhealthy("a", { selected: false, remediations: [remediationOf("a")] });
    const { actions, status } = decide(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(actions, []);
    assert.equal(entryIn(status, "a")?.remediations?.length, 1);
  });
});

describe("decide: status", () => {
  it("stays the very same where nothing but time has passed", () => {
    const snapshot = snapshotOf(policyOf(), [unhealthy("a", { remediations: [remediationOf("a")] })]);
    const first = decide(snapshot, T0).status;
    const facts = unhealthy("a", { remediations: [remediationOf("a")], previous: entryIn(first, "a") });
    assert.equal(decide({ ...snapshot, status: first, nodes: [facts] }, T0 + 30_000).status, first);
  });

  it("counts nodes truly while paused and while disabled (upstream shows 0 of 0)", () => {
    const paused = policyOf({ pauseRequests: ["x"] });
    const disabled = { reason: "RemediationTemplateNotFound" as const, message: "m" };
    for (const [policy, more] of [
      [paused, {}],
      [policyOf(), { templates: disabled }],
    ] as const) {
      const { status } = decide(snapshotOf(policy, [unhealthy("a")], more), T0);
      assert.deepEqual([status.observedNodes, status.healthyNodes], [10, 9]);
    }
  });

  it("drops the deprecated inFlightRemediations, as upstream does", () => {
    const { status } = decide(snapshotOf(policyOf(), [], { status: { inFlightRemediations: { a: "x" } } }), T0);
    assert.equal("inFlightRemediations" in status, false);
  });

  it("says nothing of counts where the spec cannot be read, keeps what is under way, and tells once", () => {
    const previous = { unhealthyNodes: [{ name: "a", remediations: [record("X", "a", T0)] }], observedNodes: 3 };
    const decision = decideInvalid(previous, "spec.selector: broken", T0);
    assert.deepEqual(decision.status.unhealthyNodes, previous.unhealthyNodes);
    assert.equal(decision.status.observedNodes, undefined);
    assert.deepEqual(
      decision.transitions.map(({ reason }) => reason),
      ["Disabled"],
    );
    assert.deepEqual(decideInvalid(decision.status, "spec.selector: broken", T0 + 1_000).transitions, []);
  });

  it("tells of an unhealthy node once", () => {
    const first = decide(snapshotOf(policyOf(), [unhealthy("a")]), T0);
    assert.ok(first.transitions.some(({ reason }) => reason === "DetectedUnhealthy"));
    const facts = unhealthy("a", { previous: entryIn(first.status, "a") });
    const second = decide(snapshotOf(policyOf(), [facts], { status: first.status }), T0);
    assert.deepEqual(second.transitions, []);
  });
});
