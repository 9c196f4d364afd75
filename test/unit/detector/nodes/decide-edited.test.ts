import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeCheckDecision, NodeFacts } from "../../../../src/detector/nodes/decide/decision.ts";
import { decideNodeCheck } from "../../../../src/detector/nodes/decide/decide.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import {
  entryIn,
  factsOf,
  nodeOf,
  policyOf,
  remediationOf,
  snapshotOf,
  T0,
  templateRef,
  templatesOf,
} from "./builders.ts";
import { unhealthy } from "./decide-fixtures.ts";

describe("decide: a spec that is edited while a node is remediated", () => {
  const policy = policyOf({ remediationTemplate: templateRef("Y") });
  const edited = (options: Parameters<typeof remediationOf>[1]) =>
    decideNodeCheck(
      snapshotOf(policy, [unhealthy("a", { remediations: [remediationOf("a", options)] }, {}, policy)]),
      T0,
    );

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
      decideNodeCheck(snapshotOf(renamed, [unhealthy("a", { remediations }, {}, renamed)]), T0).actions;
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

  it("decide: a remediation that was given up is deleted when an edited spec has a next step of its kind, once that is stored", () => {
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
      decideNodeCheck(
        snapshotOf(twoOfAKind, [unhealthy("a", { remediations: [remediation], previous }, {}, twoOfAKind)]),
        T0,
      );
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
      return decideNodeCheck(snapshotOf(single, [facts], { templates: templatesOf(single, true) }), T0);
    };
    const deleted = ({ actions }: NodeCheckDecision) =>
      actions.map((action) => action.type === "delete" && action.remediation.uid);
    const first = at();
    assert.deepEqual(deleted(first), ["old"]);
    assert.deepEqual(deleted(at(entryIn(first.status, "a"))), ["old", "new"]);
  });

  it("decide: a spec that is edited while a node is remediated cleans up after a node that recovers meanwhile", () => {
    const facts = factsOf(policy, nodeOf("a", "True", T0), T0, { remediations: [remediationOf("a")] });
    const { actions } = decideNodeCheck(snapshotOf(policy, [facts]), T0);
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["delete"],
    );
  });
});
