import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SKIP_DURATION_IF_OFF } from "../../../../src/api/names/annotations.ts";
import { decideNodeCheck } from "../../../../src/detector/nodes/decide/decide.ts";
import type { NodeCheckSnapshot, NodeFacts } from "../../../../src/detector/nodes/decide/decision.ts";
import { judgeEarly, mayBeginEarly } from "../../../../src/detector/nodes/decide/early.ts";
import type { Remediation } from "../../../../src/detector/shared/model/remediation.ts";
import type { Template } from "../../../../src/detector/shared/model/template.ts";
import { toMicroTime, toTime } from "../../../../src/runtime/time.ts";
import { conditionOf, factsOf, nodeOf, policyOf, remediationOf, snapshotOf, T0 } from "./builders.ts";
import { EARLY, hostWith, ours, policy, policyWith, PROOF, ready, RULES } from "./early-fixtures.ts";

function outcomeOf(facts: Partial<NodeFacts>, world: Partial<NodeCheckSnapshot> = {}, by = policy): string | undefined {
  const given = { host: hostWith(), early: EARLY, leaseRenewAtMs: undefined, ...facts };
  const templates = by.steps.map(() => ours()[0]!);
  const snapshot = snapshotOf(by, [factsOf(by, facts.node ?? ready(), T0, given)], { templates, ...world });
  return decideNodeCheck(snapshot, T0).nodes[0]?.outcome;
}

describe("a node that still says that it is Ready", () => {
  it("a node that still says that it is Ready is remediated if its host is proven off, with the end of the duration", () => {
    const templates = ours();
    const facts = factsOf(policy, ready(), T0, { host: hostWith(), early: EARLY, leaseRenewAtMs: undefined });
    const [create] = decideNodeCheck(snapshotOf(policy, [facts], { templates }), T0).actions;
    assert.ok(create?.type === "create");
    assert.equal(create.skipped?.isEarly, true);
    assert.equal(create.skipped?.durationUntilMs, T0 + 350_000);
  });

  const doubts: [string, Partial<NodeFacts>][] = [
    ["whose target is in maintenance", { host: hostWith({ maintenance: true }) }],
    ["whose host a remediation owns", { host: hostWith({ isOwned: true }) }],
    ["whose target was edited", { host: hostWith({ isObserved: false }) }],
    ["whose target is not Ready", { host: hostWith({ ready: conditionOf("Ready", "False") }) }],
    [
      "whose host is not verified",
      { host: hostWith({ identityVerified: conditionOf("IdentityVerified", "Unknown") }) },
    ],
    ["under the stop switch", { host: hostWith({}, { stopped: "a test" }) }],
    ["whose hosts cannot be read", { host: hostWith({}, { problem: "forbidden" }) }],
    ["with two targets", { host: { ...hostWith(), targets: [...hostWith().targets, ...hostWith().targets] } }],
    ["without a proof", { host: hostWith({ earlyOffProof: undefined }) }],
    ["with the proof of another Node", { host: hostWith({ earlyOffProof: { ...PROOF, nodeUID: "other" } }) }],
    ["with the proof of another boot", { host: hostWith({ earlyOffProof: { ...PROOF, bootID: "other" } }) }],
    ["with the proof of another lease", { host: hostWith({ earlyOffProof: { ...PROOF, leaseUID: "other" } }) }],
    [
      "whose lease was renewed since the proof",
      { host: hostWith({ earlyOffProof: { ...PROOF, leaseResourceVersion: "6" } }) },
    ],
    [
      "whose proof is older than 5 s",
      { host: hostWith({ earlyOffProof: { ...PROOF, time: toMicroTime(T0 - 5_001) } }) },
    ],
    [
      "whose proof is from the future",
      { host: hostWith({ earlyOffProof: { ...PROOF, time: toMicroTime(T0 + 5_001) } }) },
    ],
    ["whose proof came more than 5 s ago", { host: hostWith({}, {}, 5_001) }],
    ["whose lease has been silent for less than 16 s", { early: { ...EARLY, monotonicMs: 115_999 } }],
    ["whose lease is not known", { early: { ...EARLY, lease: undefined } }],
    ["whose leases are not watched", { early: undefined }],
    ["that is cordoned", { node: ready({ spec: { unschedulable: true } }) }],
    [
      "that is out of service",
      { node: ready({ spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] } }) },
    ],
    [
      "that is being deleted",
      { node: ready({ metadata: { ...ready().metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }) },
    ],
    [
      "of the control plane while another one is silent",
      {
        node: ready({}, { "node-role.kubernetes.io/control-plane": "" }),
        early: { ...EARLY, otherControlPlaneOverdue: true },
      },
    ],
    ["that is not selected", { selected: false }],
    [
      "with an attempt on record",
      { previous: { name: "a", remediations: [{ resource: { uid: "u" }, started: "2026-01-01T00:00:00Z" }] } },
    ],
  ];
  for (const [name, facts] of doubts) {
    it(`a node that still says that it is Ready, ${name}, is not remediated`, () => {
      assert.notEqual(outcomeOf(facts), "create");
      assert.notEqual(outcomeOf(facts), "threshold");
    });
  }

  for (const status of ["False", "Unknown"] as const) {
    it(`a node that says that it is not Ready (${status}) has no early remediation, although no condition of it is unhealthy yet`, () => {
      const judged = (node = ready()): string => {
        const facts = factsOf(policy, node, T0, { host: hostWith(), early: EARLY });
        return judgeEarly({ ...facts, health: { state: "healthy" } }, policy, T0).state;
      };
      const { conditions = [] } = nodeOf("a", status, T0).status;
      assert.equal(judged(), "unhealthy");
      assert.equal(judged({ ...ready(), status: { ...ready().status, conditions } }), "healthy");
    });
  }

  it("a node that still says that it is Ready is remediated unless its health check forbids that", () => {
    assert.equal(outcomeOf({}, {}, policyWith(RULES, {}, "true")), "create");
    assert.notEqual(outcomeOf({}, {}, policyWith(RULES, {}, "false")), "create");
  });

  it("a node that still says that it is Ready is not remediated if the threshold would not be met without silent nodes", () => {
    const strict = policyWith(RULES, { minHealthy: 5 });
    assert.equal(outcomeOf({}, { selectedNodes: 10, overdueNodes: 5 }, strict), "create");
    assert.notEqual(outcomeOf({}, { selectedNodes: 10, overdueNodes: 6 }, strict), "create");
  });

  it("a node that still says that it is Ready is not remediated while the storm guard holds, nor in its cooldown", () => {
    const guarded = policyWith(RULES, { minHealthy: 5, stormCooldownDuration: "60s" });
    const cooling = (forMs: number): NodeCheckSnapshot["status"] => ({
      conditions: [
        { ...conditionOf("StormCooldownActive", "True"), lastTransitionTime: toTime(T0 - forMs) },
        conditionOf("StormActive", "True"),
      ],
    });
    assert.equal(outcomeOf({}, {}, guarded), "create");
    assert.equal(outcomeOf({}, { status: { conditions: [conditionOf("StormActive", "True")] } }, guarded), "storm");
    assert.equal(outcomeOf({}, { status: cooling(59_000) }, guarded), "storm");
    assert.equal(outcomeOf({}, { status: cooling(60_000) }, guarded), "create");
  });

  it("a node that still says that it is Ready is not remediated under a health check with a duration above 550 s, or without Unknown", () => {
    const long = RULES.map((rule) => ({ ...rule, duration: "551s" }));
    assert.notEqual(outcomeOf({}, {}, policyWith(long)), "create");
    assert.equal(outcomeOf({}, {}, policyWith(RULES.map((rule) => ({ ...rule, duration: "550s" })))), "create");
    assert.notEqual(outcomeOf({}, {}, policyWith(RULES.slice(0, 1))), "create");
  });
});

describe("a template", () => {
  const [template] = ours().values();
  const mayBegin = (strategy: Record<string, unknown>, more: Partial<Template> = {}): boolean =>
    template !== undefined && mayBeginEarly({ ...template, remediationSpec: { strategy }, ...more });

  it("a BareMetalRemediationTemplate with OutOfServiceTaint and Eager, which are the defaults, begins early, and no other one", () => {
    assert.equal(mayBegin({}), true);
    assert.equal(mayBegin({ workloadRelease: "OutOfServiceTaint", podRelease: "Eager", type: "Escalate" }), true);
    assert.equal(mayBegin({ podRelease: "GarbageCollector" }), false);
    assert.equal(mayBegin({ workloadRelease: "DeleteNode" }), false);
    assert.equal(mayBegin({ type: "Reprovision" }), false);
    assert.equal(mayBegin({ type: "Unheard" }), false);
    assert.equal(
      mayBegin({}, { type: { group: "fence.example", version: "v1", kind: "X", plural: "xs", namespaced: true } }),
      false,
    );
  });
});

describe("a remediation that began early", () => {
  const begun = (more: Partial<Remediation> = {}): Remediation => ({
    ...remediationOf("a"),
    powerOnNotBeforeMs: T0 + 60_000,
    bootIDAtStart: "boot",
    ...more,
  });
  const kept = (remediation: Remediation, facts: Partial<NodeFacts> = {}): string | undefined =>
    outcomeOf({ remediations: [remediation], ...facts });

  it("a remediation that began early stays while its node still says that it is Ready", () => {
    assert.equal(kept(begun()), "soonUnhealthy");
    assert.equal(kept(begun({ bootIDAtStart: undefined })), "soonUnhealthy");
  });

  it("a remediation that began early is given its step's time from the end of the duration on", () => {
    const kind = { apiVersion: "fence.example/v1", kind: "XTemplate", namespace: "fencing", name: "x-template" };
    const escalating = policyOf(
      {
        unhealthyConditions: RULES,
        remediationTemplate: undefined,
        escalatingRemediations: [{ remediationTemplate: kind, order: 1, timeout: "60s" }],
      },
      { [SKIP_DURATION_IF_OFF]: "true" },
    );
    const node = nodeOf("a", "Unknown", T0 - 400_000);
    const actions = (more: Partial<Remediation>): string[] => {
      const remediations = [begun({ createdMs: T0 - 120_000, ...more })];
      const started = new Date(T0 - 120_000).toISOString();
      const resource = { apiVersion: "fence.example/v1", kind: "X", uid: "X-a" };
      const previous = { name: "a", remediations: [{ resource, started, templateName: "x-template" }] };
      const facts = factsOf(escalating, node, T0, { remediations, previous, early: EARLY });
      return decideNodeCheck(snapshotOf(escalating, [facts]), T0).actions.map(({ type }) => type);
    };
    assert.equal(actions({}).includes("annotate"), false);
    assert.equal(actions({ powerOnNotBeforeMs: undefined }).includes("annotate"), true);
  });

  it("a remediation that began early is deleted once its node is in another boot, it is over, or the duration is", () => {
    assert.equal(kept(begun({ bootIDAtStart: "earlier" })), "recovered");
    assert.equal(kept(begun({ succeeded: "False" })), "recovered");
    assert.equal(kept(begun({ powerOnNotBeforeMs: T0 })), "recovered");
    assert.equal(kept(begun({ powerOnNotBeforeMs: undefined })), "recovered");
  });
});
