import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeHealthCheckStatus } from "../../../../src/api/ironfence/node-health-check.ts";
import type { NodeFacts, NodeCheckSnapshot } from "../../../../src/detector/nodes/decide/decision.ts";
import { decideNodeCheck } from "../../../../src/detector/nodes/decide/decide.ts";
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
  templatesOf,
} from "./builders.ts";
import { unhealthy, record, UNSEEN } from "./decide-fixtures.ts";

describe("decide", () => {
  const policy = policyOf(escalation("X", "Y"));
  const at = (facts: Partial<NodeFacts>, status: NodeHealthCheckStatus = {}) =>
    decideNodeCheck(snapshotOf(policy, [unhealthy("a", facts, {}, policy)], { status }), T0);

  it("decide adopts a CR without a record, with the CR's own time, so that a crash before the record loses nothing", () => {
    const { status } = at({ remediations: [remediationOf("a", { createdMs: T0 - 5_000 })] });
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.started, toTime(T0 - 5_000));
  });

  it("decide forgets an attempt that was not given up and whose CR is gone", () => {
    const { status } = at({ previous: { name: "a", remediations: [record("X", "a", T0 - 55_000)] } });
    assert.equal(entryIn(status, "a")?.remediations, undefined);
  });

  it("decide keeps the record of a CR that cannot be seen now", () => {
    const facts = unhealthy("a", { previous: { name: "a", remediations: [record("X", "a", T0)] } }, {}, policy);
    const { status } = decideNodeCheck(snapshotOf(policy, [facts], UNSEEN), T0);
    assert.equal(entryIn(status, "a")?.remediations?.length, 1);
  });

  it("decide does not count an attempt as given up before its CR is marked, so that the mark is tried again", () => {
    const remediations = [remediationOf("a", { createdMs: T0 - 60_000 })];
    const { actions, status } = at({ remediations });
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["annotate"],
    );
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, undefined);
  });

  it("decide starts the next step once it is marked", () => {
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) };
    const { actions, status } = at({ remediations: [remediationOf("a", { createdMs: T0 - 61_000, annotations })] });
    assert.deepEqual(
      actions.map((action) => (action.type === "create" ? action.template.type.kind : action.type)),
      ["Y"],
    );
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, toTime(T0 - 1_000));
  });

  it("decide lets a mark that is not a time pass without an unwritable status", () => {
    const annotations = { "remediation.medik8s.io/nhc-timed-out": "now" };
    const { status } = at({ remediations: [remediationOf("a", { annotations })] });
    assert.equal(entryIn(status, "a")?.remediations?.[0]?.timedOut, undefined);
  });

  it("decide leaves an attempt its whole time, and looks again at the second it is over", () => {
    const { actions, nextCheckMs } = at({ remediations: [remediationOf("a", { createdMs: T0 - 59_000 })] });
    assert.deepEqual([actions, nextCheckMs], [[], T0 + 1_000]);
  });

  it("decide never gives up a single template, and leaves its failed CR alone until it is tried again", () => {
    const single = policyOf();
    const failedAgo = (agoMs: number, previous?: ReturnType<typeof entryIn>) => {
      const [failed] = [remediationOf("a", { createdMs: T0 - 3_600_000, succeeded: "False" })];
      const remediations = [{ ...failed, succeededSinceMs: T0 - agoMs }];
      return decideNodeCheck(snapshotOf(single, [unhealthy("a", { remediations, previous })]), T0);
    };
    const early = failedAgo(599_000);
    assert.deepEqual(early.actions, []);
    assert.equal(early.nextCheckMs, T0 + 1_000);
    assert.equal(entryIn(early.status, "a")?.remediations?.[0]?.timedOut, undefined);
    const mended = (fenceableSinceMs: number) => {
      const [failed] = [remediationOf("a", { createdMs: T0 - 3_600_000, succeeded: "False" })];
      const remediations = [{ ...failed, succeededSinceMs: T0 - 5_000 }];
      const at = (previous?: ReturnType<typeof entryIn>) =>
        decideNodeCheck(snapshotOf(single, [unhealthy("a", { remediations, fenceableSinceMs, previous })]), T0);
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
    assert.deepEqual(
      decideNodeCheck(snapshotOf(single, [unhealthy("a", { remediations: [running] })]), T0).actions,
      [],
    );
  });

  it("decide tries a template twice if two steps name it", () => {
    const twice = policyOf({
      remediationTemplate: undefined,
      escalatingRemediations: [1, 2].map((order) => ({ ...escalation("X").escalatingRemediations[0], order })),
    });
    const previous = { name: "a", remediations: [record("X", "a", T0 - 120_000, T0 - 60_000)] };
    const facts = unhealthy("a", { previous }, {}, twice);
    const { nodes } = decideNodeCheck(snapshotOf(twice, [facts], { templates: templatesOf(twice, true) }), T0);
    assert.deepEqual(nodes[0]?.outcome, "create");
    const spent = [...previous.remediations, record("X", "a2", T0 - 60_000, T0 - 1_000)];
    const over = unhealthy("a", { previous: { name: "a", remediations: spent } }, {}, twice);
    assert.equal(decideNodeCheck(snapshotOf(twice, [over]), T0).nodes[0]?.outcome, "noTemplateLeft");
  });

  it("decide renews the lease while an attempt is under way, and not after", () => {
    const deferred = at({ remediations: [remediationOf("a")], leaseRenewAtMs: undefined });
    assert.deepEqual(
      deferred.actions.map(({ type }) => type),
      ["renewLease"],
    );
  });
});

describe("decide: the list of steps starts again", () => {
  const MINUTE_MS = 60_000;
  /** Facts after `rounds` failed rounds of X and Y, the last one `agoMs` ago. No remediation is left. */
  const after = (rounds: number, agoMs: number, annotations = {}, more: Partial<NodeFacts> = {}) => {
    const policy = policyOf(escalation("X", "Y"), annotations);
    const remediations = Array.from({ length: rounds }, (_, round) => {
      const atMs = T0 - agoMs - (rounds - 1 - round) * MINUTE_MS;
      return ["X", "Y"].map((kind) => record(kind, `a${round}`, atMs - MINUTE_MS, atMs));
    }).flat();
    const attempts = [{ uid: "u1", startedMs: T0 - 3_600_000 }];
    const facts = unhealthy("a", { previous: { name: "a", remediations }, attempts, ...more }, {}, policy);
    return decideNodeCheck(snapshotOf(policy, [facts]), T0);
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
    // The node could be fenced all the time, so this was not the cause of the failure.
    assert.equal(outcome(T0 - 5_000), "noTemplateLeft");
    assert.equal(outcome(T0 - 86_400_000), "noTemplateLeft");
    assert.equal(outcome(undefined), "noTemplateLeft");
    assert.equal(outcome(T0 - 4_000, { "ironfence.io/start-anew": "false" }), "noTemplateLeft");
    assert.equal(outcome(T0 - 4_000, { "ironfence.io/attempt-budget": "1/24h" }), "budgetSpent");
  });

  it("decide: the list of steps starts again and reports what is tried next and when, and how to try at once", () => {
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
    const { actions } = decideNodeCheck(snapshotOf(policy, [facts]), T0);
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
    const { status } = decideNodeCheck(snapshotOf(policy, [unhealthy("a", { remediations }, {}, policy)]), T0);
    const facts = unhealthy("a", { remediations, previous: entryIn(status, "a") }, {}, policy);
    const { actions, nodes } = decideNodeCheck(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["delete", "delete"],
    );
    assert.equal(nodes[0]?.outcome, "waiting");
  });
});

describe("the attempt budget of decide", () => {
  const policy = policyOf({}, { "ironfence.io/attempt-budget": "2/1h" });
  const after = (...agoMs: number[]) => {
    const attempts = agoMs.map((ms, index) => ({ uid: `u${index}`, startedMs: T0 - ms }));
    return decideNodeCheck(snapshotOf(policy, [unhealthy("a", { attempts }, {}, policy)]), T0);
  };

  it("the attempt budget of decide leaves a node to the operator once its attempts are used up, with a condition, an event and a time", () => {
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

  it("the attempt budget of decide goes on by itself when the oldest attempt leaves the window", () => {
    assert.equal(after(3_600_000, 60_000).nodes[0]?.outcome, "create");
    assert.equal(after(60_000).nodes[0]?.outcome, "create");
  });

  it("the attempt budget of decide sets no condition for a budget that was never used up, and clears it if one was", () => {
    const calm = after(60_000).status;
    assert.equal(
      calm.conditions?.some(({ type }) => type === "AttemptBudgetSpent"),
      false,
    );
    const { status } = decideNodeCheck(snapshotOf(policy, [], { status: after(2_000, 1_000).status }), T0 + 1);
    assert.equal(status.conditions?.find(({ type }) => type === "AttemptBudgetSpent")?.status, "False");
  });

  it("the attempt budget of decide stops an escalation half-way too", () => {
    const steps = policyOf(escalation("X", "Y"), { "ironfence.io/attempt-budget": "1/1h" });
    const annotations = { "remediation.medik8s.io/nhc-timed-out": toTime(T0 - 1_000) };
    const facts = unhealthy("a", { remediations: [remediationOf("a", { annotations })] }, {}, steps);
    assert.equal(decideNodeCheck(snapshotOf(steps, [facts]), T0).nodes[0]?.outcome, "budgetSpent");
  });

  it("the attempt budget of decide counts what other health checks remember of the node, but leaves it to them to remember that", () => {
    const attemptsOfOthers = [3_500_000, 60_000].map((ms) => ({ uid: `u${ms}`, startedMs: T0 - ms }));
    const { actions, nodes } = decideNodeCheck(
      snapshotOf(policy, [unhealthy("a", { attemptsOfOthers }, {}, policy)]),
      T0,
    );
    assert.deepEqual([actions, nodes[0]?.outcome], [[], "budgetSpent"]);
  });

  it("the attempt budget of decide has a remediation deleted only once it is remembered, unless there is no room for that", () => {
    const well = nodeOf("a", "True", T0 - 1_000);
    const facts = factsOf(policy, well, T0, { remediations: [remediationOf("a")] });
    const types = (changes: Partial<NodeFacts>, more: Partial<NodeCheckSnapshot> = {}) =>
      decideNodeCheck(snapshotOf(policy, [{ ...facts, ...changes }], more), T0).actions.map(({ type }) => type);
    assert.deepEqual(types({ attempts: [] }), ["recordAttempts"]);
    assert.deepEqual(types({}), ["delete"]);
    assert.deepEqual(types({ attempts: [] }, { isHistoryFull: true }), ["recordAttempts", "delete"]);
  });

  it("the attempt budget of decide remembers the attempts of a node that a reprovision has deleted", () => {
    const remediations = [remediationOf("a")];
    const facts = {
      ...factsOf(policy, nodeOf("a", "Unknown", T0), T0, { remediations }),
      node: undefined,
      attempts: [],
    };
    assert.deepEqual(
      decideNodeCheck(snapshotOf(policy, [facts]), T0).actions.map(({ type }) => type),
      ["recordAttempts"],
    );
  });
});
