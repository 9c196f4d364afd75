import assert from "node:assert/strict";
import { test } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import type { Condition } from "../../../src/api/schema/meta.ts";
import { problemsOf } from "../../../src/cli/status/problems.ts";
import { AT, OVERVIEW } from "./overview-fixture.ts";

function remediation(...conditions: Omit<Condition, "lastTransitionTime">[]): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ironfence-system", name: "fence-n1", uid: "r1", resourceVersion: "1" },
    spec: {},
    status: { node: { name: "n1" }, conditions: conditions.map((each) => ({ ...each, lastTransitionTime: AT })) },
  } as unknown as BareMetalRemediation;
}

const messagesOf = (remediations: BareMetalRemediation[]): string[] =>
  problemsOf({ ...OVERVIEW, remediations }).map(({ message }) => message);

test("a remediation that failed is a problem that says how it ends, and not that the node was not fenced", () => {
  const message = "node n1 rejoined, but was not Ready in time";
  const failed = remediation({ type: "Succeeded", status: "False", reason: "RejoinTimeout", message });
  assert.deepEqual(messagesOf([failed]), [
    `the remediation of node n1 has failed: ${message}. After you have fixed the cause, delete it: kubectl delete baremetalremediation fence-n1 -n ironfence-system`,
  ]);
});

test("a remediation that is held says that its node is not fenced yet", () => {
  const held = { type: "Processing", status: "True", reason: "BMCUnreachable", message: "no answer" } as const;
  assert.deepEqual(messagesOf([remediation(held)]), ["node n1 is not fenced yet: no answer"]);
});

test("maintenance is shown without a time, since nothing says when it began", () => {
  const target: FencingTarget = {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { namespace: "ironfence-system", name: "t1", uid: "u1", resourceVersion: "1" },
    spec: { nodeName: "n1", maintenance: true, identity: { verification: "Required" }, devices: [] },
    status: {
      conditions: [{ type: "Ready", status: "False", reason: "Maintenance", message: "said", lastTransitionTime: AT }],
    },
  };
  assert.deepEqual(
    problemsOf({ ...OVERVIEW, targets: [target] }).map(({ message }) => message),
    [
      "node n1 is in maintenance, so its host is neither powered off nor on: set spec.maintenance to false when the work is done",
    ],
  );
});
