import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { whyNotEarly } from "../../../../src/remediator/early/candidate.ts";
import { nodeOf, targetOf } from "./builders.ts";

const NODE = nodeOf("n1");
const TARGET = targetOf("n1");
const nodeWith = (metadata: Partial<Node["metadata"]>, spec: Node["spec"] = {}): Node => ({
  ...NODE,
  metadata: { ...NODE.metadata, ...metadata },
  spec,
});
const nodeSaying = (status: string): Node => ({
  ...NODE,
  status: { ...NODE.status, conditions: [{ type: "Ready", status }] },
});
const targetWith = (status: Record<string, unknown>, spec: Record<string, unknown> = {}): FencingTarget => ({
  ...TARGET,
  spec: { ...TARGET.spec, ...spec },
  status: { ...TARGET.status, ...status },
});
const conditions = (ready: string, identityVerified: string) => ({
  conditions: [
    { type: "Ready", status: ready },
    { type: "IdentityVerified", status: identityVerified },
  ],
});

describe("a host whose node does not renew its lease", () => {
  it("a host whose node does not renew its lease is read early if nothing is against it", () => {
    assert.equal(whyNotEarly(NODE, TARGET), undefined);
    assert.equal(whyNotEarly(NODE, targetWith({ wrongHost: { time: "", generation: 0 } })), undefined);
  });

  const cases: [string, Node | undefined, FencingTarget, RegExp][] = [
    ["is gone", undefined, TARGET, /there is no such node/],
    ["says that it is not Ready", nodeSaying("False"), TARGET, /the node is not Ready/],
    ["is Unknown", nodeSaying("Unknown"), TARGET, /the node is not Ready/],
    ["is being deleted", nodeWith({ deletionTimestamp: "2026-01-01T00:00:00Z" }), TARGET, /is being deleted/],
    ["is cordoned", nodeWith({}, { unschedulable: true }), TARGET, /is cordoned/],
    [
      "is excluded",
      nodeWith({ labels: { "remediation.medik8s.io/exclude-from-remediation": "true" } }),
      TARGET,
      /is excluded/,
    ],
    [
      "is out of service",
      nodeWith({}, { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] }),
      TARGET,
      /is out of service/,
    ],
    ["has a target in maintenance", NODE, targetWith({}, { maintenance: true }), /in maintenance/],
    ["has a target that a remediation owns", NODE, targetWith({ owner: { uid: "r" } }), /a remediation owns the host/],
    ["has a target that was edited", NODE, targetWith({ observedGeneration: 0 }), /was edited after its last probe/],
    ["has a target that is not Ready", NODE, targetWith(conditions("False", "True")), /the target is not Ready/],
    ["has a target of another host", NODE, targetWith(conditions("True", "False")), /identity .* is not verified/],
    [
      "has a target whose last proof was wrong",
      NODE,
      targetWith({ wrongHost: { time: "", generation: 1 } }),
      /an earlier proof was wrong/,
    ],
    ["was not read On in this boot", NODE, targetWith({ onInBoot: "earlier" }), /not read On in this boot/],
  ];
  for (const [what, node, target, why] of cases) {
    it(`a host whose node stops renewing its lease is not read early if the node ${what}`, () => {
      assert.match(whyNotEarly(node, target) ?? "", why);
    });
  }
});
