import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeHealthCheckStatus } from "../../../../src/api/ironfence/node-health-check.ts";
import type {
  NodeCheckDecision,
  NodeFacts,
  NodeCheckSnapshot,
} from "../../../../src/detector/nodes/decide/decision.ts";
import { decide, decideInvalid } from "../../../../src/detector/nodes/decide/decide.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import {
  entryIn,
  escalation,
  factsOf,
  nodeOf,
  policyOf,
  remediationOf,
  snapshotOf,
  T0,
  templateRef,
  templatesOf,
} from "./builders.ts";
import type { RemediationOptions } from "./builders.ts";

const UNHEALTHY_SINCE = T0 - 60_000;
const MANY = policyOf();
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
    ["none while the view is stale", [unhealthy("a")], { blocked: "no news" }, { a: "blocked" }],
    [
      "none where a live list shows too few healthy nodes",
      [unhealthy("a")],
      { policy: policyOf({ minHealthy: 2 }), liveCounts: { selected: 10, healthy: 1, absent: 0 } },
      { a: "threshold" },
    ],
    [
      "none while disabled",
      [unhealthy("a")],
      { templates: { reason: "RemediationTemplateNotFound", message: "m" } },
      { a: "disabled" },
    ],
    ["not an excluded one", [unhealthy("a", {}, excluded)], {}, { a: "excluded" }],
    ["not one that another health check cares for", [unhealthy("a", { peerCheck: "x" })], {}, { a: "peerCheck" }],
    ["not one with a foreign CR", [unhealthy("a")], { isForeign: () => true }, { a: "foreign" }],
    [
      "not one that is deferred",
      [unhealthy("a", { deferral: { reason: "lease", untilMs: T0 + 1, cause: "lease" } })],
      {},
      { a: "deferred" },
    ],
    [
      "one whose deferral is over",
      [unhealthy("a", { deferral: { reason: "lease", untilMs: T0, cause: "lease" } })],
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
    [
      "no second one either, though its kind allows many",
      [unhealthy("a", { remediations: [remediationOf("a", { name: "a-x", terminating: true })] }, {}, MANY)],
      { policy: MANY, templates: templatesOf(MANY, true) },
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

  it("decide: attempts adopts a CR without a record, with the CR's own time, so that a crash before the record loses nothing", () => {
    const { status } = at({ remediations: [remediationOf("a", { createdMs: T0 - 5_000 })] });
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.started, toTime(T0 - 5_000));
  });

  it("decide: attempts forgets an attempt that was not given up and whose CR is gone", () => {
    const { status } = at({ previous: { name: "a", remediations: [record("X", "a", T0 - 55_000)] } });
    assert.equal(entryIn(status, "a")?.remediations, undefined);
  });

  it("decide: attempts keeps the record of a CR that cannot be seen now", () => {
    const facts = unhealthy("a", { previous: { name: "a", remediations: [record("X", "a", T0)] } }, {}, policy);
    const { status } = decide(snapshotOf(policy, [facts], { canSee: () => false }), T0);
    assert.equal(entryIn(status, "a")?.remediations?.length, 1);
  });

  it("decide: attempts does not count an attempt as given up before its CR is marked, so that the mark is tried again", () => {
    const remediations = [remediationOf("a", { createdMs: T0 - 60_000 })];
    const { actions, status } = at({ remediations });
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["annotate"],
    );
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, undefined);
  });

  it("decide: attempts starts the next step once it is marked", () => {
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) };
    const { actions, status } = at({ remediations: [remediationOf("a", { createdMs: T0 - 61_000, annotations })] });
    assert.deepEqual(
      actions.map((action) => (action.type === "create" ? action.template.type.kind : action.type)),
      ["Y"],
    );
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, toTime(T0 - 1_000));
  });

  it("decide: attempts lets a mark that is no time pass without an unwritable status", () => {
    const annotations = { "remediation.medik8s.io/nhc-timed-out": "now" };
    const { status } = at({ remediations: [remediationOf("a", { annotations })] });
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, undefined);
  });

  it("decide: attempts leaves an attempt its whole time, and looks again at the second it is over", () => {
    const { actions, nextCheckMs } = at({ remediations: [remediationOf("a", { createdMs: T0 - 59_000 })] });
    assert.deepEqual([actions, nextCheckMs], [[], T0 + 1_000]);
  });

  it("decide: attempts never gives up a single template, and leaves its failed CR alone until it is tried again", () => {
    const single = policyOf();
    const failedAgo = (agoMs: number, previous?: ReturnType<typeof entryIn>) => {
      const [failed] = [remediationOf("a", { createdMs: T0 - 3_600_000, succeeded: "False" })];
      const remediations = [{ ...failed, succeededSinceMs: T0 - agoMs }];
      return decide(snapshotOf(single, [unhealthy("a", { remediations, previous })]), T0);
    };
    const early = failedAgo(599_000);
    assert.deepEqual(early.actions, []);
    assert.equal(early.nextCheckMs, T0 + 1_000);
    assert.equal(entryIn(early.status, "a")?.remediations?.[0]?.timedOut, undefined);
    const mended = (fenceableSinceMs: number) => {
      const [failed] = [remediationOf("a", { createdMs: T0 - 3_600_000, succeeded: "False" })];
      const remediations = [{ ...failed, succeededSinceMs: T0 - 5_000 }];
      const at = (previous?: ReturnType<typeof entryIn>) =>
        decide(snapshotOf(single, [unhealthy("a", { remediations, fenceableSinceMs, previous })]), T0);
      return at(entryIn(at().status, "a")).actions;
    };
    assert.deepEqual(mended(T0 - 5_000), []);
    assert.deepEqual(
      mended(T0 - 4_000).map(({ type }) => type),
      ["delete"],
    );
    const due = failedAgo(600_000);
    assert.deepEqual(due.actions, [], "it is not deleted before its failure is stored");
    assert.deepEqual(
      failedAgo(600_000, entryIn(due.status, "a")).actions.map((action) => action.type === "delete" && action.because),
      ["restarted"],
    );
    assert.equal(entryIn(due.status, "a")?.remediations?.[0]?.timedOut, toTime(T0 - 600_000));
    const running = remediationOf("a", { createdMs: T0 - 3_600_000 });
    assert.deepEqual(decide(snapshotOf(single, [unhealthy("a", { remediations: [running] })]), T0).actions, []);
  });

  it("decide: attempts tries one template twice if it stands twice", () => {
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

  it("decide: attempts renews the lease while an attempt is under way, and not after", () => {
    const deferred = at({ remediations: [remediationOf("a")], leaseRenewAtMs: undefined });
    assert.deepEqual(
      deferred.actions.map(({ type }) => type),
      ["renewLease"],
    );
  });
});

describe("decide: the list of steps starts again", () => {
  const MINUTE_MS = 60_000;
  /** So many rounds of X, Y have failed, the last of them `agoMs` ago; no CR is left. */
  const after = (rounds: number, agoMs: number, annotations = {}, more: Partial<NodeFacts> = {}) => {
    const policy = policyOf(escalation("X", "Y"), annotations);
    const remediations = Array.from({ length: rounds }, (_, round) => {
      const atMs = T0 - agoMs - (rounds - 1 - round) * MINUTE_MS;
      return ["X", "Y"].map((kind) => record(kind, `a${round}`, atMs - MINUTE_MS, atMs));
    }).flat();
    const attempts = [{ uid: "u1", startedMs: T0 - 3_600_000 }];
    const facts = unhealthy("a", { previous: { name: "a", remediations }, attempts, ...more }, {}, policy);
    return decide(snapshotOf(policy, [facts]), T0);
  };
  const waits: [number, number][] = [
    [1, 10],
    [2, 20],
    [3, 40],
    [4, 80],
    [5, 120],
    [6, 120],
    [9, 120],
  ];
  for (const [rounds, minutes] of waits) {
    it(`decide: the list of steps starts again ${minutes} minutes after it has failed ${rounds} times, and no sooner`, () => {
      const early = after(rounds, minutes * MINUTE_MS - 1_000);
      assert.deepEqual([early.nodes[0]?.outcome, early.actions, early.nextCheckMs], ["noTemplateLeft", [], T0 + 1_000]);
      assert.match(early.nodes[0]?.reason ?? "", /again at 20/);
      const due = after(rounds, minutes * MINUTE_MS);
      assert.deepEqual(
        due.actions.map((action) => (action.type === "create" ? action.template.type.kind : action.type)),
        ["X"],
      );
    });
  }

  it("decide: the list of steps starts again at once if its host can be fenced again, which it could not after the failure", () => {
    const outcome = (fenceableSinceMs: number | undefined, annotations = {}) =>
      after(3, 5_000, annotations, { fenceableSinceMs }).nodes[0]?.outcome;
    assert.equal(outcome(T0 - 4_000), "create");
    // It could be fenced all the time, so that was not what the remediation failed for.
    assert.equal(outcome(T0 - 5_000), "noTemplateLeft");
    assert.equal(outcome(T0 - 86_400_000), "noTemplateLeft");
    assert.equal(outcome(undefined), "noTemplateLeft");
    assert.equal(outcome(T0 - 4_000, { "ironfence.io/start-anew": "false" }), "noTemplateLeft");
    assert.equal(outcome(T0 - 4_000, { "ironfence.io/attempt-budget": "1/24h" }), "budgetSpent");
  });

  it("decide: the list of steps starts again says what is tried next and when, and how to try at once", () => {
    const { nodes, status } = after(1, 1_000);
    assert.match(nodes[0]?.reason ?? "", /again at 20\S+\. To try again now: ironfence fence --node a$/);
    assert.equal(status.reason, "NHC is enabled; the last remediation failed for a");
  });

  it("decide: the list of steps starts again never, if an annotation says so", () => {
    const { nodes, nextCheckMs } = after(1, 86_400_000, { "ironfence.io/start-anew": "false" });
    assert.deepEqual([nodes[0]?.outcome, nextCheckMs], ["noTemplateLeft", undefined]);
  });

  it("decide: the list of steps starts again goes on to its second step as in the first round", () => {
    const policy = policyOf(escalation("X", "Y"));
    const remediations = [
      ...["X", "Y"].map((kind) => record(kind, "a0", T0 - 1_300_000, T0 - 1_200_000)),
      record("X", "a1", T0 - MINUTE_MS, T0),
    ];
    const facts = unhealthy("a", { previous: { name: "a", remediations } }, {}, policy);
    const { actions } = decide(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(
      actions.map((action) => action.type === "create" && action.template.type.kind),
      ["Y"],
    );
  });

  it("decide: the list of steps starts again keeps the records of five rounds", () => {
    assert.equal(entryIn(after(9, 0).status, "a")?.remediations?.length, 10);
  });

  it("decide: the list of steps starts again has the CRs of the round that failed deleted first, since they bear the names", () => {
    const policy = policyOf(escalation("X", "Y"));
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 700_000) };
    const remediations = ["X", "Y"].map((kind) => remediationOf("a", { kind, createdMs: T0 - 800_000, annotations }));
    const { status } = decide(snapshotOf(policy, [unhealthy("a", { remediations }, {}, policy)]), T0);
    const facts = unhealthy("a", { remediations, previous: entryIn(status, "a") }, {}, policy);
    const { actions, nodes } = decide(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["delete", "delete"],
    );
    assert.equal(nodes[0]?.outcome, "waiting");
  });
});

describe("decide: attempt budget", () => {
  const policy = policyOf({}, { "ironfence.io/attempt-budget": "2/1h" });
  const after = (...agoMs: number[]) => {
    const attempts = agoMs.map((ms, index) => ({ uid: `u${index}`, startedMs: T0 - ms }));
    return decide(snapshotOf(policy, [unhealthy("a", { attempts }, {}, policy)]), T0);
  };

  it("decide: attempt budget leaves a node to the operator once its attempts are spent, with a condition, an event and a time", () => {
    const { actions, nodes, standing, status, nextCheckMs } = after(3_500_000, 60_000);
    assert.deepEqual([actions, nodes[0]?.outcome, nextCheckMs], [[], "budgetSpent", T0 + 100_000]);
    assert.deepEqual(
      standing.map(({ type, reason }) => [type, reason]),
      [
        ["Normal", "DetectedUnhealthy"],
        ["Warning", "RemediationSkipped"],
      ],
    );
    const condition = status.conditions?.find(({ type }) => type === "AttemptBudgetSpent");
    assert.deepEqual([condition?.status, condition?.reason], ["True", "GivingUp"]);
    assert.match(condition?.message ?? "", /: a\.$/);
  });

  it("decide: attempt budget goes on by itself when the oldest attempt leaves the window", () => {
    assert.equal(after(3_600_000, 60_000).nodes[0]?.outcome, "create");
    assert.equal(after(60_000).nodes[0]?.outcome, "create");
  });

  it("decide: attempt budget says nothing of a budget that was never spent, and takes the condition back if one was", () => {
    const calm = after(60_000).status;
    assert.equal(
      calm.conditions?.some(({ type }) => type === "AttemptBudgetSpent"),
      false,
    );
    const { status } = decide(snapshotOf(policy, [], { status: after(2_000, 1_000).status }), T0 + 1);
    assert.equal(status.conditions?.find(({ type }) => type === "AttemptBudgetSpent")?.status, "False");
  });

  it("decide: attempt budget stops an escalation half-way too", () => {
    const steps = policyOf(escalation("X", "Y"), { "ironfence.io/attempt-budget": "1/1h" });
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) };
    const facts = unhealthy("a", { remediations: [remediationOf("a", { annotations })] }, {}, steps);
    assert.equal(decide(snapshotOf(steps, [facts]), T0).nodes[0]?.outcome, "budgetSpent");
  });

  it("decide: attempt budget counts what other health checks remember of the node, but leaves it to them to remember that", () => {
    const attemptsOfOthers = [3_500_000, 60_000].map((ms) => ({ uid: `u${ms}`, startedMs: T0 - ms }));
    const { actions, nodes } = decide(snapshotOf(policy, [unhealthy("a", { attemptsOfOthers }, {}, policy)]), T0);
    assert.deepEqual([actions, nodes[0]?.outcome], [[], "budgetSpent"]);
  });

  it("decide: attempt budget has a remediation deleted only once it is remembered, unless there is no room for that", () => {
    const well = nodeOf("a", "True", T0 - 1_000);
    const facts = factsOf(policy, well, T0, { remediations: [remediationOf("a")] });
    const types = (changes: Partial<NodeFacts>, more: Partial<NodeCheckSnapshot> = {}) =>
      decide(snapshotOf(policy, [{ ...facts, ...changes }], more), T0).actions.map(({ type }) => type);
    assert.deepEqual(types({ attempts: [] }), ["recordAttempts"]);
    assert.deepEqual(types({}), ["delete"]);
    assert.deepEqual(types({ attempts: [] }, { isHistoryFull: true }), ["recordAttempts", "delete"]);
  });

  it("decide: attempt budget remembers the attempts of a node that a reprovision has deleted", () => {
    const remediations = [remediationOf("a")];
    const facts = {
      ...factsOf(policy, nodeOf("a", "Unknown", T0), T0, { remediations }),
      node: undefined,
      attempts: [],
    };
    assert.deepEqual(
      decide(snapshotOf(policy, [facts]), T0).actions.map(({ type }) => type),
      ["recordAttempts"],
    );
  });
});

describe("decide: a spec that is edited while a node is remediated", () => {
  const policy = policyOf({ remediationTemplate: templateRef("Y") });
  const edited = (options: Parameters<typeof remediationOf>[1]) =>
    decide(snapshotOf(policy, [unhealthy("a", { remediations: [remediationOf("a", options)] }, {}, policy)]), T0);

  it("decide: a spec that is edited while a node is remediated starts no second remediation while one whose template is gone from the spec exists, and says so", () => {
    const { actions, nodes, status } = edited({});
    assert.deepEqual([actions, nodes[0]?.outcome, status.phase], [[], "disabled", "Disabled"]);
    assert.match(status.reason ?? "", /SpecInvalid: spec must not change while a node is being remediated: X a /);
    assert.equal(entryIn(status, "a")?.remediations?.length, 1);
  });

  it("decide: a spec that is edited while a node is remediated uses the new spec once that one is over", () => {
    const marked = { annotations: { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) } };
    for (const over of [{ succeeded: "False" }, { succeeded: "True" }, marked]) {
      const { actions } = edited(over);
      assert.deepEqual(
        actions.map((action) => action.type === "create" && action.template.type.kind),
        ["Y"],
      );
    }
  });

  it("decide: a spec that is edited while a node is remediated has a failed remediation of another template of its kind deleted first, since it has the name", () => {
    const renamed = policyOf({ remediationTemplate: templateRef("X", "x2-template") });
    const given = (remediations: NodeFacts["remediations"]) =>
      decide(snapshotOf(renamed, [unhealthy("a", { remediations }, {}, renamed)]), T0).actions;
    for (const over of [{ succeeded: "False" }, { succeeded: "True" }]) {
      assert.deepEqual(
        given([remediationOf("a", over)]).map((action) => action.type === "delete" && action.because),
        ["restarted"],
      );
    }
    assert.deepEqual(given([remediationOf("a", { succeeded: "False", terminating: true })]), [], "it is on its way");
    assert.deepEqual(
      given([]).map((action) => action.type === "create" && action.template.name),
      ["x2-template"],
    );
  });

  it("decide: a spec that is edited while a node is remediated has a remediation that was given up deleted for the next step of its kind once that is stored", () => {
    const steps = [templateRef("X"), templateRef("X", "x2-template")];
    const twoOfAKind = policyOf({
      remediationTemplate: undefined,
      escalatingRemediations: steps.map((remediationTemplate, order) => ({
        remediationTemplate,
        order,
        timeout: "60s",
      })),
    });
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) };
    const at = (remediation: ReturnType<typeof remediationOf>, previous?: ReturnType<typeof entryIn>) =>
      decide(snapshotOf(twoOfAKind, [unhealthy("a", { remediations: [remediation], previous }, {}, twoOfAKind)]), T0);
    const givenUp = remediationOf("a", { createdMs: T0 - 61_000, annotations });
    const first = at(givenUp);
    assert.deepEqual([first.actions, first.nextCheckMs], [[], T0 + 1_000]);
    assert.deepEqual(
      at(givenUp, entryIn(first.status, "a")).actions.map(({ type }) => type),
      ["delete"],
    );
    const ofSecondStep = { "remediation.medik8s.io/template-name": "x2-template" };
    const underWay = at(remediationOf("a", { createdMs: T0 - 59_000, annotations: ofSecondStep }));
    assert.deepEqual([underWay.actions, underWay.nextCheckMs], [[], T0 + 1_000], "its time is not over");
  });

  it("decide: a spec that is edited while a node is remediated does not wait for the record of a remediation that is over and belongs to no step any more", () => {
    const single = policyOf({ remediationTemplate: templateRef("X", "x2-template") });
    const old = remediationOf("a", { name: "a-old", uid: "old", succeeded: "False" });
    const failed = {
      ...remediationOf("a", {
        name: "a-new",
        uid: "new",
        succeeded: "False",
        annotations: { "remediation.medik8s.io/template-name": "x2-template" },
      }),
      succeededSinceMs: T0 - 600_000,
    };
    const at = (previous?: ReturnType<typeof entryIn>) => {
      const facts = unhealthy("a", { remediations: [old, failed], previous }, {}, single);
      return decide(snapshotOf(single, [facts], { templates: templatesOf(single, true) }), T0);
    };
    const deleted = ({ actions }: NodeCheckDecision) =>
      actions.map((action) => action.type === "delete" && action.remediation.uid);
    const first = at();
    assert.deepEqual(deleted(first), ["old"]);
    assert.deepEqual(deleted(at(entryIn(first.status, "a"))), ["old", "new"]);
  });

  it("decide: a spec that is edited while a node is remediated cleans up after a node that recovers meanwhile", () => {
    const facts = factsOf(policy, nodeOf("a", "True", T0), T0, { remediations: [remediationOf("a")] });
    const { actions } = decide(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["delete"],
    );
  });
});

describe("decide: nodes that are away", () => {
  const policy = policyOf();
  const gone = (options: Parameters<typeof remediationOf>[1]): NodeFacts => ({
    ...unhealthy("a", { remediations: [remediationOf("a", options)] }),
    node: undefined,
    selected: false,
    health: { state: "healthy" },
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
  it("decide: status stays the very same if only time has passed", () => {
    const snapshot = snapshotOf(policyOf(), [unhealthy("a", { remediations: [remediationOf("a")] })]);
    const first = decide(snapshot, T0).status;
    const facts = unhealthy("a", { remediations: [remediationOf("a")], previous: entryIn(first, "a") });
    assert.equal(decide({ ...snapshot, status: first, nodes: [facts] }, T0 + 30_000).status, first);
  });

  it("decide: status is disabled with a template of Metal3's off OKD, since no Machine would own its requests and each would fail", () => {
    const reference = {
      apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1",
      kind: "Metal3RemediationTemplate",
      namespace: "capi",
      name: "reboot",
    };
    const policy = policyOf({ remediationTemplate: reference });
    const [[step, template] = []] = [...templatesOf(policy)];
    assert.ok(step !== undefined && template !== undefined);
    const type = { ...template.type, group: "infrastructure.cluster.x-k8s.io", kind: "Metal3Remediation" };
    const templates = new Map([[step, { ...template, type }]]);
    const decideOn = (isOkd: boolean): NodeCheckDecision => {
      const platform = { isOkd, upgrading: undefined, hasTerminationHandler: false };
      return decide(snapshotOf(policy, [unhealthy("a", {}, {}, policy)], { templates, platform }), T0);
    };
    const { actions, status } = decideOn(false);
    assert.deepEqual([actions, status.phase], [[], "Disabled"]);
    assert.match(
      status.reason ?? "",
      /Metal3RemediationTemplate reboot: .*owned by a Machine.*use a MachineHealthCheck/,
    );
    assert.notEqual(decideOn(true).status.phase, "Disabled");
  });

  it("decide: status counts nodes truly while paused and while disabled (upstream shows 0 of 0)", () => {
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

  it("decide: status lists in inFlightRemediations each node with a remediation under way, and nothing once there is none", () => {
    const started = T0 - 5_000;
    const inFlight = (facts: Partial<NodeFacts>, more: Partial<NodeCheckSnapshot> = {}) => {
      const before = { status: { inFlightRemediations: { gone: "x" } } };
      return decide(snapshotOf(policyOf(), [unhealthy("a", facts)], { ...before, ...more }), T0).status
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
    assert.deepEqual(inFlight(unseen, { canSee: () => false }), listed);
    const gaveUp = { previous: { name: "a", remediations: [record("X", "a", started, T0)] } };
    assert.deepEqual(inFlight(gaveUp, { canSee: () => false }), undefined);
  });

  it("decide: status counts in its phase the nodes that are being remediated, and names those whose remediation has failed", () => {
    const of = (name: string, succeeded: string) =>
      unhealthy(name, { remediations: [remediationOf(name, { succeeded })] });
    const shown = (...nodes: NodeFacts[]) => {
      const { phase, reason } = decide(snapshotOf(policyOf(), nodes), T0).status;
      return [phase, reason];
    };
    assert.deepEqual(shown(of("a", "Unknown"), of("b", "False")), ["Remediating", "NHC is remediating 1 nodes"]);
    assert.deepEqual(shown(of("b", "False"), of("a", "False")), [
      "Enabled",
      "NHC is enabled; the last remediation failed for a, b",
    ]);
  });

  it("decide: status says of a remediation that failed why, when the next one starts, and how to start it now", () => {
    const failed = remediationOf("a", {
      succeeded: "False",
      failure: { reason: "BMCAuthenticationFailed", message: "the BMC refused the password" },
    });
    const told = (spec: Record<string, string> = {}) => {
      const snapshot = snapshotOf(policyOf({}, spec), [unhealthy("a", { remediations: [failed] })]);
      return decide(snapshot, T0).nodes[0];
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
    const { status, standing } = decide(snapshot, T0);
    const sentence = `${why}. The next try starts at ${toTime(T0 + 600_000)}. ${now}`;
    const shown = status.conditions?.find(({ type }) => type === "RemediationFailed");
    assert.deepEqual([shown?.status, shown?.message], ["True", `a: ${sentence}`]);
    assert.ok(standing.some(({ reason, note }) => reason === "RemediationFailed" && note === sentence));
    const recovered = decide(snapshotOf(policyOf(), [], { status }), T0).status;
    assert.equal(recovered.conditions?.find(({ type }) => type === "RemediationFailed")?.status, "False");
    assert.equal(told({ "ironfence.io/start-anew": "false" })?.reason, `${why}. No retry is scheduled. ${now}`);
  });

  it("decide: status says of a remediation that failed that nothing may start, while that is so and its pause is over", () => {
    const failed = { ...remediationOf("a", { succeeded: "False" }), succeededSinceMs: T0 - 600_000 };
    const paused = policyOf({ pauseRequests: ["x"] });
    const first = decide(snapshotOf(paused, [unhealthy("a", { remediations: [failed] })]), T0);
    const told = ({ status }: NodeCheckDecision) => status.conditions?.find(({ type }) => type === "RemediationFailed");
    const why = "No retry starts now: Postponing potential remediations because of pause requests: x";
    assert.deepEqual([first.nodes[0]?.outcome, told(first)?.status], ["failed", "True"]);
    assert.equal(first.nextCheckMs, T0 + 48 * 3_600_000, "only its age changes with time");
    assert.equal(told(first)?.message, `a: X fencing/a has failed (no reason given). ${why}`);
    // The threshold or a pause may come to deferral after the failure is stored, or after the last of several steps.
    const previous = { name: "a", remediations: [record("X", "a", T0 - 700_000, T0 - 600_000)] };
    const stored = decide(snapshotOf(paused, [unhealthy("a", { remediations: [failed], previous })]), T0);
    assert.deepEqual([stored.nodes[0]?.outcome, told(stored)?.status], ["paused", "True"]);
    assert.equal(told(stored)?.message, `a: Every step has failed. ${why}`);
    const open = decide(snapshotOf(policyOf(), [unhealthy("a", { remediations: [failed] })]), T0);
    assert.equal(entryIn(open.status, "a")?.remediations?.[0]?.timedOut, toTime(T0 - 600_000));
  });

  it("decide: status says of a remediation that succeeded for a node that stays unhealthy how to try again", () => {
    const remediations = [remediationOf("a", { succeeded: "True" })];
    const { actions, nodes } = decide(snapshotOf(policyOf(), [unhealthy("a", { remediations })]), T0);
    assert.deepEqual([actions, nodes[0]?.outcome], [[], "succeeded"]);
    assert.equal(
      nodes[0]?.reason,
      "X fencing/a has succeeded, but this health check still finds the node unhealthy. To try again, delete it: kubectl delete x a -n fencing",
    );
  });

  it("decide: status says nothing of counts if the spec cannot be read, keeps what is under way, and reports once", () => {
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

  it("decide: status reports an unhealthy node once", () => {
    const first = decide(snapshotOf(policyOf(), [unhealthy("a")]), T0);
    assert.ok(first.standing.some(({ reason }) => reason === "DetectedUnhealthy"));
    const facts = unhealthy("a", { previous: entryIn(first.status, "a") });
    const second = decide(snapshotOf(policyOf(), [facts], { status: first.status }), T0);
    assert.deepEqual([second.transitions, second.standing], [[], []]);
  });
});
