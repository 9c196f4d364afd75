import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type {
  NodeCheckDecision,
  NodeFacts,
  NodeCheckSnapshot,
} from "../../../../src/detector/nodes/decide/decision.ts";
import { decideNodeCheck, decideInvalid } from "../../../../src/detector/nodes/decide/decide.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { entryIn, factsOf, nodeOf, policyOf, remediationOf, snapshotOf, T0, templatesOf } from "./builders.ts";
import type { RemediationOptions } from "./builders.ts";
import { UNHEALTHY_SINCE, unhealthy, record, UNSEEN } from "./decide-fixtures.ts";

const MANY = policyOf();

const CONTROL_PLANE = { "node-role.kubernetes.io/master": "" };

function outcomes(nodes: NodeFacts[], more: Parameters<typeof snapshotOf>[2] = {}, policy = policyOf()) {
  return Object.fromEntries(
    decideNodeCheck(snapshotOf(policy, nodes, more), T0).nodes.map(({ name, outcome }) => [name, outcome]),
  );
}

describe("decide: who gets a remediation", () => {
  const excluded = { "remediation.medik8s.io/exclude-from-remediation": "true" };
  const cases: [string, NodeFacts[], Parameters<typeof snapshotOf>[2], Record<string, string>][] = [
    ["decide: an unhealthy node gets a remediation", [unhealthy("a")], {}, { a: "create" }],
    [
      "decide: no node gets a remediation while the view is stale",
      [unhealthy("a")],
      { blocked: "no news" },
      { a: "blocked" },
    ],
    [
      "decide: no node gets a remediation if a live list shows too few healthy nodes",
      [unhealthy("a")],
      { policy: policyOf({ minHealthy: 2 }), liveCounts: { selected: 10, healthy: 1, absent: 0 } },
      { a: "threshold" },
    ],
    [
      "decide: no node gets a remediation while its health check is disabled",
      [unhealthy("a")],
      { templates: { reason: "RemediationTemplateNotFound", message: "m" } },
      { a: "disabled" },
    ],
    ["decide: an excluded node gets no remediation", [unhealthy("a", {}, excluded)], {}, { a: "excluded" }],
    [
      "decide: a node that another health check remediates gets no remediation",
      [unhealthy("a", { peerCheck: "x" })],
      {},
      { a: "peerCheck" },
    ],
    [
      "decide: a node with a foreign CR gets no remediation",
      [unhealthy("a", { foreign: [{ kind: "X", namespace: "fencing" }] })],
      {},
      { a: "foreign" },
    ],
    [
      "decide: a node with a foreign CR in another namespace gets a remediation",
      [unhealthy("a", { foreign: [{ kind: "X", namespace: "other" }] })],
      {},
      { a: "create" },
    ],
    [
      "decide: a node with a foreign CR of another kind gets a remediation",
      [unhealthy("a", { foreign: [{ kind: "Y", namespace: "fencing" }] })],
      {},
      { a: "create" },
    ],
    [
      "decide: a deferred node gets no remediation",
      [unhealthy("a", { deferral: { reason: "lease", untilMs: T0 + 1, cause: "lease" } })],
      {},
      { a: "deferred" },
    ],
    [
      "decide: a node whose deferral is over gets a remediation",
      [unhealthy("a", { deferral: { reason: "lease", untilMs: T0, cause: "lease" } })],
      {},
      { a: "create" },
    ],
    [
      "decide: only the control plane node that has been unhealthy for longer gets a remediation",
      [
        unhealthy("a", {}, CONTROL_PLANE),
        factsOf(policyOf(), nodeOf("b", "Unknown", UNHEALTHY_SINCE - 1_000, CONTROL_PLANE), T0),
        unhealthy("worker"),
      ],
      {},
      { b: "create", a: "controlPlane", worker: "create" },
    ],
    [
      "decide: no control plane node gets a remediation while another one is being remediated",
      [unhealthy("a", {}, CONTROL_PLANE)],
      { controlPlaneBusy: ["z"] },
      { a: "controlPlane" },
    ],
    [
      "decide: a control plane node gets a remediation if it is the one that is being remediated",
      [unhealthy("a", {}, CONTROL_PLANE)],
      { controlPlaneBusy: ["a"] },
      { a: "create" },
    ],
    [
      "decide: a node with a remediation gets no second one",
      [unhealthy("a", { remediations: [remediationOf("a")] })],
      {},
      { a: "remediating" },
    ],
    [
      "decide: a node whose last CR is still being deleted gets no remediation",
      [unhealthy("a", { remediations: [remediationOf("a", { terminating: true })] })],
      {},
      { a: "waiting" },
    ],
    [
      "decide: a node whose last CR is still being deleted gets no remediation although the kind allows several",
      [unhealthy("a", { remediations: [remediationOf("a", { name: "a-x", terminating: true })] }, {}, MANY)],
      { policy: MANY, templates: templatesOf(MANY, true) },
      { a: "waiting" },
    ],
  ];
  for (const [name, nodes, more, wanted] of cases) it(name, () => assert.deepEqual(outcomes(nodes, more), wanted));

  it("decide gives the same answer to the same question", () => {
    const snapshot = snapshotOf(policyOf(), [unhealthy("a"), unhealthy("b")]);
    assert.deepEqual(decideNodeCheck(snapshot, T0), decideNodeCheck(snapshot, T0));
  });
});

describe("decide: nodes that were deleted or relabeled", () => {
  const policy = policyOf();
  const gone = (options: Parameters<typeof remediationOf>[1]): NodeFacts => ({
    ...unhealthy("a", { remediations: [remediationOf("a", options)] }),
    node: undefined,
    selected: false,
    health: { state: "healthy" },
  });
  const expected = [{ type: "PermanentNodeDeletionExpected", status: "True" }];
  const cases: [string, NodeFacts, string[]][] = [
    ["decide: the CR of a deleted node is deleted", gone({}), ["delete"]],
    ["decide: the CR of a deleted node is kept if its remediator deletes the node", gone({ conditions: expected }), []],
    [
      "decide: the CR of a deleted node is deleted if its remediator has succeeded, although that deletes the node",
      gone({ conditions: expected, succeeded: "True" }),
      ["delete"],
    ],
    ["decide: the CR of a deleted node is not deleted twice", gone({ terminating: true }), []],
  ];
  for (const [name, facts, wanted] of cases) {
    it(name, () => {
      const { actions } = decideNodeCheck(snapshotOf(policy, [facts]), T0);
      assert.deepEqual(
        actions.map(({ type }) => type),
        wanted,
      );
    });
  }

  it("decide: the CR of a relabeled node stays while its remediation is under way", () => {
    const facts = unhealthy("a", { selected: false, remediations: [remediationOf("a")] });
    const { actions, status } = decideNodeCheck(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(actions, []);
    assert.equal(entryIn(status, "a")?.remediations?.length, 1);
  });
});

describe("the status of decide", () => {
  it("the status of decide stays the very same if only time has passed", () => {
    const snapshot = snapshotOf(policyOf(), [unhealthy("a", { remediations: [remediationOf("a")] })]);
    const first = decideNodeCheck(snapshot, T0).status;
    const facts = unhealthy("a", { remediations: [remediationOf("a")], previous: entryIn(first, "a") });
    assert.equal(decideNodeCheck({ ...snapshot, status: first, nodes: [facts] }, T0 + 30_000).status, first);
  });

  it("the status of decide is Disabled for a Metal3 template outside OKD, because no Machine would own its requests", () => {
    const reference = {
      apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1",
      kind: "Metal3RemediationTemplate",
      namespace: "capi",
      name: "reboot",
    };
    const policy = policyOf({ remediationTemplate: reference });
    const [template] = templatesOf(policy);
    assert.ok(template !== undefined);
    const type = { ...template.type, group: "infrastructure.cluster.x-k8s.io", kind: "Metal3Remediation" };
    const templates = [{ ...template, type }];
    const decideOn = (isOkd: boolean): NodeCheckDecision => {
      const platform = { isOkd, upgrading: undefined, hasTerminationHandler: false };
      return decideNodeCheck(snapshotOf(policy, [unhealthy("a", {}, {}, policy)], { templates, platform }), T0);
    };
    const { actions, status } = decideOn(false);
    assert.deepEqual([actions, status.phase], [[], "Disabled"]);
    assert.match(
      status.reason ?? "",
      /Metal3RemediationTemplate reboot: .*owned by a Machine.*use a MachineHealthCheck/,
    );
    assert.notEqual(decideOn(true).status.phase, "Disabled");
  });

  it("the status of decide counts nodes truly while paused and while disabled (upstream shows 0 of 0)", () => {
    const paused = policyOf({ pauseRequests: ["x"] });
    const disabled = { reason: "RemediationTemplateNotFound" as const, message: "m" };
    for (const [policy, more] of [
      [paused, {}],
      [policyOf(), { templates: disabled }],
    ] as const) {
      const { status } = decideNodeCheck(snapshotOf(policy, [unhealthy("a")], more), T0);
      assert.deepEqual([status.observedNodes, status.healthyNodes], [10, 9]);
    }
  });

  it("the status of decide lists in inFlightRemediations each node with a remediation under way, and is empty otherwise", () => {
    const started = T0 - 5_000;
    const inFlight = (facts: Partial<NodeFacts>, more: Partial<NodeCheckSnapshot> = {}) => {
      const before = { status: { inFlightRemediations: { gone: "x" } } };
      return decideNodeCheck(snapshotOf(policyOf(), [unhealthy("a", facts)], { ...before, ...more }), T0).status
        .inFlightRemediations;
    };
    const one = (options: RemediationOptions): Partial<NodeFacts> => ({
      remediations: [remediationOf("a", { createdMs: started, ...options })],
    });
    const listed = { a: toTime(started) };
    assert.deepEqual(inFlight({}), undefined);
    assert.deepEqual(inFlight(one({})), listed);
    assert.deepEqual(inFlight(one({ succeeded: "True" })), undefined);
    assert.deepEqual(inFlight(one({ succeeded: "False" })), undefined);
    assert.deepEqual(
      inFlight(one({ succeeded: "False", terminating: true })),
      listed,
      "its remediator undoes it still",
    );
    const unseen = { previous: { name: "a", remediations: [record("X", "a", started)] } };
    assert.deepEqual(inFlight(unseen, UNSEEN), listed);
    const gaveUp = { previous: { name: "a", remediations: [record("X", "a", started, T0)] } };
    assert.deepEqual(inFlight(gaveUp, UNSEEN), undefined);
  });

  it("the status of decide counts in its phase the nodes that are being remediated, and names those whose remediation has failed", () => {
    const of = (name: string, succeeded: string) =>
      unhealthy(name, { remediations: [remediationOf(name, { succeeded })] });
    const shown = (...nodes: NodeFacts[]) => {
      const { phase, reason } = decideNodeCheck(snapshotOf(policyOf(), nodes), T0).status;
      return [phase, reason];
    };
    assert.deepEqual(shown(of("a", "Unknown"), of("b", "False")), ["Remediating", "NHC is remediating 1 nodes"]);
    assert.deepEqual(shown(of("b", "False"), of("a", "False")), [
      "Enabled",
      "NHC is enabled; the last remediation failed for a, b",
    ]);
  });

  it("the status of decide says of a remediation that failed why, when the next one starts, and how to start it now", () => {
    const failed = remediationOf("a", {
      succeeded: "False",
      failure: { reason: "BMCAuthenticationFailed", message: "the BMC refused the password" },
    });
    const told = (spec: Record<string, string> = {}) => {
      const snapshot = snapshotOf(policyOf({}, spec), [unhealthy("a", { remediations: [failed] })]);
      return decideNodeCheck(snapshot, T0).nodes[0];
    };
    const now = "To try again now, delete it: kubectl delete x a -n fencing";
    const why = "X fencing/a has failed (BMCAuthenticationFailed: the BMC refused the password)";
    assert.deepEqual(told(), {
      name: "a",
      outcome: "failed",
      reason: `${why}. The next try starts at ${toTime(T0 + 600_000)}. ${now}`,
      nextCheckMs: T0 + 600_000,
    });
    const snapshot = snapshotOf(policyOf(), [unhealthy("a", { remediations: [failed] })]);
    const { status, standing } = decideNodeCheck(snapshot, T0);
    const sentence = `${why}. The next try starts at ${toTime(T0 + 600_000)}. ${now}`;
    const shown = status.conditions?.find(({ type }) => type === "RemediationFailed");
    assert.deepEqual([shown?.status, shown?.message], ["True", `a: ${sentence}`]);
    assert.ok(standing.some(({ reason, note }) => reason === "RemediationFailed" && note === sentence));
    const recovered = decideNodeCheck(snapshotOf(policyOf(), [], { status }), T0).status;
    assert.equal(recovered.conditions?.find(({ type }) => type === "RemediationFailed")?.status, "False");
    assert.equal(told({ "ironfence.io/start-anew": "false" })?.reason, `${why}. No retry is scheduled. ${now}`);
  });

  it("the status of decide says of a remediation that failed that nothing may start, while that is so and its pause is over", () => {
    const failed = { ...remediationOf("a", { succeeded: "False" }), succeededSinceMs: T0 - 600_000 };
    const paused = policyOf({ pauseRequests: ["x"] });
    const first = decideNodeCheck(snapshotOf(paused, [unhealthy("a", { remediations: [failed] })]), T0);
    const told = ({ status }: NodeCheckDecision) => status.conditions?.find(({ type }) => type === "RemediationFailed");
    const why = "No retry starts now: Postponing potential remediations because of pause requests: x";
    assert.deepEqual([first.nodes[0]?.outcome, told(first)?.status], ["failed", "True"]);
    assert.equal(first.nextCheckMs, T0 + 48 * 3_600_000, "only its age changes with time");
    assert.equal(told(first)?.message, `a: X fencing/a has failed (no reason given). ${why}`);
    // The threshold or a pause may hold the health check after the failure is stored, or after the last of several
    // steps.
    const previous = { name: "a", remediations: [record("X", "a", T0 - 700_000, T0 - 600_000)] };
    const stored = decideNodeCheck(snapshotOf(paused, [unhealthy("a", { remediations: [failed], previous })]), T0);
    assert.deepEqual([stored.nodes[0]?.outcome, told(stored)?.status], ["paused", "True"]);
    assert.equal(told(stored)?.message, `a: Every step has failed. ${why}`);
    const open = decideNodeCheck(snapshotOf(policyOf(), [unhealthy("a", { remediations: [failed] })]), T0);
    assert.equal(entryIn(open.status, "a")?.remediations?.[0]?.timedOut, toTime(T0 - 600_000));
  });

  it("the status of decide says of a remediation that succeeded for a node that stays unhealthy how to try again", () => {
    const remediations = [remediationOf("a", { succeeded: "True" })];
    const { actions, nodes } = decideNodeCheck(snapshotOf(policyOf(), [unhealthy("a", { remediations })]), T0);
    assert.deepEqual([actions, nodes[0]?.outcome], [[], "succeeded"]);
    assert.equal(
      nodes[0]?.reason,
      "X fencing/a has succeeded, but this health check still finds the node unhealthy. To try again, delete it: kubectl delete x a -n fencing",
    );
  });

  it("the status of decide says nothing of counts if the spec cannot be read, keeps what is under way, and reports once", () => {
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

  it("the status of decide reports an unhealthy node once", () => {
    const first = decideNodeCheck(snapshotOf(policyOf(), [unhealthy("a")]), T0);
    assert.ok(first.standing.some(({ reason }) => reason === "DetectedUnhealthy"));
    const facts = unhealthy("a", { previous: entryIn(first.status, "a") });
    const second = decideNodeCheck(snapshotOf(policyOf(), [facts], { status: first.status }), T0);
    assert.deepEqual([second.transitions, second.standing], [[], []]);
  });
});
