import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CURRENT_CONFIG, DESIRED_CONFIG, SKIP_DURATION_IF_OFF } from "../../../../src/api/names/annotations.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { NodeFacts, NodeCheckSnapshot } from "../../../../src/detector/nodes/decide/decision.ts";
import { decideNodeCheck } from "../../../../src/detector/nodes/decide/decide.ts";
import { compileNodePolicy } from "../../../../src/detector/nodes/decide/policy.ts";
import type { ObservedHost, ObservedTarget } from "../../../../src/detector/shared/model/observed-host.ts";
import { judgeProvenOff, skipDuration } from "../../../../src/detector/nodes/decide/skip-duration.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import {
  conditionOf,
  entryIn,
  factsOf,
  nodeOf,
  policyOf,
  remediationOf,
  hostOf as sightOfTarget,
  snapshotOf,
  T0,
  targetOf as targetFor,
  templateRef,
} from "./builders.ts";

const SECOND_MS = 1_000;
/** The time at which the node failed. Its duration is 5 minutes. */
const FAILED_MS = T0 - 20 * SECOND_MS;
const RULES = [
  { type: "Ready", status: "False", duration: "300s" },
  { type: "Ready", status: "Unknown", duration: "300s" },
];
const policy = policyOf({ unhealthyConditions: RULES }, { [SKIP_DURATION_IF_OFF]: "true" });

const targetOf = (more: Partial<ObservedTarget> = {}, name = "t1") => targetFor(failed(), more, name);
const hostOf = (more: Partial<ObservedHost> = {}, target: Partial<ObservedTarget> = {}) =>
  sightOfTarget(failed(), more, target);

const proofOf = (more: Partial<NonNullable<ObservedTarget["offProof"]>>) => ({
  offProof: { time: toTime(T0 - SECOND_MS), nodeUID: "uid-a", notReadySince: toTime(FAILED_MS), ...more },
});

const failed = (more: Partial<Node> = {}, labels = {}): Node => ({
  ...nodeOf("a", "Unknown", FAILED_MS, labels),
  ...more,
});

function decideOn(
  node: Node,
  host: ObservedHost | undefined,
  more: Partial<NodeFacts> = {},
  world: Partial<NodeCheckSnapshot> = {},
) {
  return decideNodeCheck(
    snapshotOf(policy, [factsOf(policy, node, T0, { host, leaseRenewAtMs: undefined, ...more })], world),
    T0,
  );
}
const outcomeOf = (...given: Parameters<typeof decideOn>) => decideOn(...given).nodes[0]?.outcome;

describe("a duration is skipped", () => {
  it("a duration is skipped if the node is not Ready and its host is proven off, and the reason is reported", () => {
    const { nodes, actions, status, nextCheckMs } = decideOn(failed(), hostOf());
    assert.equal(nodes[0]?.outcome, "create");
    assert.match(
      nodes[0]?.reason ?? "",
      /before its duration is over: FencingTarget fencing\/t1 read its host Off twice/,
    );
    const [create] = actions;
    assert.ok(create?.type === "create");
    assert.equal(create.skipped?.durationUntilMs, FAILED_MS + 300 * SECOND_MS);
    assert.ok(entryIn(status, "a"));
    // If the proof has no effect, the answer changes when the proof is too old.
    assert.equal(nextCheckMs, T0 + 29 * SECOND_MS);
  });

  it("a duration is skipped under Ready=False just as under Unknown", () => {
    assert.equal(outcomeOf(nodeOf("a", "False", FAILED_MS), hostOf()), "create");
  });

  it("a duration is skipped without being reported as skipped if it was over anyway", () => {
    const { actions } = decideOn(nodeOf("a", "Unknown", T0 - 301 * SECOND_MS), hostOf());
    assert.ok(actions[0]?.type === "create" && actions[0].skipped === undefined);
  });
});

describe("no duration is skipped", () => {
  const ready = nodeOf("a", "True", FAILED_MS);
  const never: [string, Node, ObservedHost | undefined, string | RegExp][] = [
    ["for a node that is Ready", ready, hostOf(), /^No condition/],
    ["under a health check that does not ask for it", failed(), undefined, /unless its conditions change$/],
    [
      "under the stop switch",
      failed(),
      hostOf({ stopped: "paused by ConfigMap x" }),
      /not earlier, because paused by ConfigMap x/,
    ],
    ["with a target in maintenance", failed(), hostOf({}, { maintenance: true }), /fencing\/t1 is in maintenance/],
    ["for a cordoned node", failed({ spec: { unschedulable: true } }), hostOf(), /the node is cordoned/],
    ["while a remediation owns the host", failed(), hostOf({}, { isOwned: true }), /is claimed by a remediation/],
    [
      "if another host answers",
      failed(),
      hostOf({}, { identityVerified: conditionOf("IdentityVerified", "False", "another host answers") }),
      /has not verified the identity of its host: another host answers/,
    ],
    [
      "if the check of the identity was waived",
      failed(),
      hostOf({}, { identityVerified: conditionOf("IdentityVerified", "Unknown", "not checked") }),
      /has not verified the identity of its host: not checked/,
    ],
    [
      "with an ambiguous target",
      failed(),
      hostOf({}, { ready: conditionOf("Ready", "False", "t2 claims the same UUID") }),
      /is not Ready: t2 claims the same UUID/,
    ],
    [
      "with a target that was edited after its last probe",
      failed(),
      hostOf({}, { isObserved: false }),
      /was edited after its last probe/,
    ],
    ["with a target that was never probed", failed(), hostOf({}, { ready: undefined }), /not probed yet/],
    [
      "if two targets name the node",
      failed(),
      hostOf({ targets: ["t1", "t2"].map((name) => ({ target: targetOf({}, name), proofArrivedAgoMs: 0 })) }),
      /several FencingTargets name the node: .*t1, .*t2/,
    ],
    ["if no target names the node", failed(), hostOf({ targets: [] }), /no FencingTarget names the node/],
    ["if targets cannot be read", failed(), hostOf({ problem: "no CRD" }), /because no CRD/],
    [
      "for a host that was read Off only once",
      failed(),
      hostOf({}, { offProof: undefined }),
      /no proof that the host is off/,
    ],
    ["for a host that was powered on again", failed(), hostOf({}, { powerState: "On" }), /reports power state On/],
    [
      "for a host whose power state is unknown",
      failed(),
      hostOf({}, { powerState: undefined }),
      /reports power state Unknown/,
    ],
    [
      "because of a proof from an earlier outage",
      failed(),
      hostOf({}, proofOf({ notReadySince: toTime(FAILED_MS - SECOND_MS) })),
      /from another outage/,
    ],
    [
      "because of a proof of another Node with that name",
      failed(),
      hostOf({}, proofOf({ nodeUID: "x" })),
      /from another outage/,
    ],
    ["because of a proof of another boot", failed(), hostOf({}, proofOf({ bootID: "b1" })), /from another outage/],
    [
      "because of a proof whose time is old",
      failed(),
      hostOf({}, proofOf({ time: toTime(T0 - 31_000) })),
      /is not fresh/,
    ],
    [
      "because of a proof whose time is in the future",
      failed(),
      hostOf({}, proofOf({ time: toTime(T0 + 3_000) })),
      /is not fresh/,
    ],
    [
      "because of a proof that arrived long ago, whatever its time",
      failed(),
      hostOf({ targets: [{ target: targetOf(), proofArrivedAgoMs: 30_001 }] }),
      /is not fresh/,
    ],
    [
      "because of a proof from before the watch began",
      failed(),
      hostOf({ targets: [{ target: targetOf(), proofArrivedAgoMs: undefined }] }),
      /is not fresh/,
    ],
  ];
  for (const [name, node, host, reason] of never) {
    it(`no duration is skipped ${name}`, () => {
      const { nodes, actions } = decideOn(node, host);
      assert.deepEqual(actions, []);
      assert.equal(nodes[0]?.outcome, node === ready ? "healthy" : "soonUnhealthy");
      assert.match(nodes[0]?.reason ?? "", new RegExp(reason));
    });
  }

  it("no duration of a Ready node is skipped, whatever is reported of its host", () => {
    const proof = proofOf({ notReadySince: "" });
    const verdict = judgeProvenOff(ready, hostOf({}, proof), T0);
    assert.deepEqual(verdict, { proven: false, why: "the node's condition Ready is neither False nor Unknown" });
  });

  it("no duration is skipped of any other condition, though the host is off", () => {
    const disk = { type: "DiskPressure", status: "Unknown", duration: "300s" };
    const other = policyOf({ unhealthyConditions: [disk] }, { [SKIP_DURATION_IF_OFF]: "true" });
    const node = failed();
    node.status.conditions?.push({ type: "DiskPressure", status: "Unknown", lastTransitionTime: toTime(FAILED_MS) });
    const facts = factsOf(other, node, T0, { host: hostOf() });
    assert.deepEqual(
      decideNodeCheck(snapshotOf(other, [facts]), T0).nodes.map(({ outcome }) => outcome),
      ["soonUnhealthy"],
    );
  });

  it("no duration is skipped of a rule that makes Ready nodes unhealthy", () => {
    const odd = policyOf(
      { unhealthyConditions: [{ type: "Ready", status: "True", duration: "300s" }] },
      { [SKIP_DURATION_IF_OFF]: "true" },
    );
    const facts = factsOf(odd, ready, T0, { host: hostOf({}, proofOf({})) });
    assert.equal(decideNodeCheck(snapshotOf(odd, [facts]), T0).nodes[0]?.outcome, "soonUnhealthy");
  });
});

describe("a skipped duration changes nothing else", () => {
  const controlPlane = { "node-role.kubernetes.io/control-plane": "" };
  it("a skipped duration does not change the threshold", () => {
    const strict = policyOf({ unhealthyConditions: RULES, minHealthy: "100%" }, { [SKIP_DURATION_IF_OFF]: "true" });
    const facts = factsOf(strict, failed(), T0, { host: hostOf() });
    assert.equal(decideNodeCheck(snapshotOf(strict, [facts]), T0).nodes[0]?.outcome, "threshold");
  });
  it("a skipped duration does not change the effect of the label that excludes a node", () => {
    const node = failed({}, { "remediation.medik8s.io/exclude-from-remediation": "true" });
    assert.equal(outcomeOf(node, hostOf()), "excluded");
  });
  it("a skipped duration does not change the limit of one control plane node at a time", () => {
    const busy = { controlPlaneBusy: ["z"] };
    assert.equal(outcomeOf(failed({}, controlPlane), hostOf(), {}, busy), "controlPlane");
  });
  it("a skipped duration does not change the effect of the lease of a maintenance tool", () => {
    const deferral = { reason: "taken", untilMs: T0 + SECOND_MS, cause: "lease" as const };
    assert.equal(outcomeOf(failed(), hostOf(), { deferral }), "deferred");
  });
  it("a skipped duration does not change the effect of a stale view or an older health check", () => {
    assert.equal(outcomeOf(failed(), hostOf(), {}, { blocked: "no news" }), "blocked");
    assert.equal(outcomeOf(failed(), hostOf(), { peerCheck: "x" }), "peerCheck");
  });
  it("a skipped duration does not change the effect of an upgrade that only the node shows", () => {
    const node = failed();
    node.metadata.annotations = { [CURRENT_CONFIG]: "a", [DESIRED_CONFIG]: "b" };
    const platform = { isOkd: true, upgrading: undefined, hasTerminationHandler: false };
    assert.equal(outcomeOf(node, hostOf(), {}, { platform }), "upgrading");
  });
  it("those that waited their whole duration come first", () => {
    const waited = nodeOf("b", "Unknown", T0 - 301 * SECOND_MS, controlPlane);
    const facts = [
      factsOf(policy, failed({}, controlPlane), T0, { host: hostOf() }),
      factsOf(policy, waited, T0, { host: hostOf() }),
    ];
    const outcomes = decideNodeCheck(snapshotOf(policy, facts), T0).nodes.map(
      ({ name, outcome }) => `${name} ${outcome}`,
    );
    assert.deepEqual(outcomes, ["b create", "a controlPlane"]);
  });
  it("a remediation that has begun is kept, with its lease, when the proof is gone, and nothing further starts", () => {
    const remediations = [remediationOf("a")];
    const { nodes, actions } = decideOn(failed(), hostOf({}, { isOwned: true }), {
      remediations,
      previous: { name: "a", remediations: [recordOf("a")] },
      leaseRenewAtMs: T0,
    });
    assert.equal(nodes[0]?.outcome, "soonUnhealthy");
    assert.deepEqual(
      actions.map(({ type }) => type),
      ["renewLease"],
    );
  });
});

const recordOf = (name: string) => ({
  resource: { apiVersion: "fence.example/v1", kind: "X", namespace: "fencing", name, uid: `X-${name}` },
  started: toTime(T0),
  templateName: "x-template",
});

describe("the annotation skip-duration-if-off", () => {
  it("the annotation skip-duration-if-off skips durations if it is true, and lets Ready nodes be remediated unless it is false", () => {
    for (const [value, skips, begins] of [
      [undefined, false, true],
      ["false", false, false],
      ["true", true, true],
    ] as const) {
      const { skipsDurationIfOff, beginsEarly } = policyOf({}, value && { [SKIP_DURATION_IF_OFF]: value });
      assert.deepEqual([value, skipsDurationIfOff, beginsEarly], [value, skips, begins]);
    }
  });
  it("the annotation skip-duration-if-off has to be true for a host that is proven off to skip the duration of its node", () => {
    const waits = policyOf({ unhealthyConditions: RULES });
    const [unhealthyCondition] = waits.unhealthyConditions;
    assert.ok(unhealthyCondition);
    const health = { state: "soonUnhealthy" as const, unhealthyCondition, untilMs: T0 + SECOND_MS };
    const facts = { node: failed(), health, host: hostOf({}, proofOf({})) };
    assert.equal(skipDuration(facts, policy, T0).state, "unhealthy");
    assert.equal(skipDuration(facts, waits, T0), health);
  });
  it("the annotation skip-duration-if-off is named if its value cannot be read", () => {
    const spec = { selector: { matchLabels: { a: "b" } }, remediationTemplate: templateRef("X") };
    assert.deepEqual(compileNodePolicy(spec, { [SKIP_DURATION_IF_OFF]: "yes" }), {
      problem: "annotation ironfence.io/skip-duration-if-off: yes is neither true nor false",
    });
  });
  it("the annotation skip-duration-if-off is reported once if it cannot have an effect", () => {
    const { standing } = decideOn(nodeOf("a", "True", FAILED_MS), hostOf(), {}, { hostProblem: "no CRD" });
    assert.deepEqual(
      standing.map(({ reason, note }) => [reason, note]),
      [["OffProofUnavailable", "Durations are not skipped, even for hosts that are off: no CRD"]],
    );
  });
});
