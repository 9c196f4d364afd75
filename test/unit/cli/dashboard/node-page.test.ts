import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nodePage } from "../../../../src/cli/dashboard/view/node-page.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { AT, OVERVIEW } from "../overview-fixture.ts";
import { node, remediation, target } from "./fixture.ts";

const UNDECIDED = { problem: "forbidden" };
const at = (seconds: number): string => new Date(Date.parse(AT) + seconds * 1_000).toISOString();
const OVERVIEW_OF_FENCE: Overview = {
  ...OVERVIEW,
  nowMs: Date.parse(at(60)),
  nodes: [node("w1", "Unknown")],
  targets: [target("w1", { status: { identity: { nodeName: "w1", systemUUID: "4c4c" } } })],
  remediations: [
    remediation("w1", "PoweringOff", "PoweringOff", {
      timeline: [
        { step: "HostClaimed", time: at(1), message: "claimed" },
        { step: "PowerOffSent", time: at(2), message: "sent" },
      ],
    }),
  ],
};

describe("the page of a node", () => {
  it("the page of a node puts each remediation in a picture that goes on to the present while it is under way", () => {
    const page = nodePage(OVERVIEW_OF_FENCE, "w1", UNDECIDED);
    assert.deepEqual(
      page?.timelines.map(({ startMs, endMs, isRunning, entries }) => [startMs, endMs, isRunning, entries.length]),
      [[Date.parse(AT), Date.parse(at(60)), true, 2]],
    );
    assert.equal(page?.fence?.phase, "PoweringOff");
  });

  it("the page of a node shows the steps of a fence and why decisions cannot be read", () => {
    const page = nodePage(OVERVIEW_OF_FENCE, "w1", UNDECIDED);
    assert.equal(page?.undecided, "forbidden");
    assert.equal(page?.steps[0]?.step, "agent");
    const check = page?.steps.find(({ step }) => step === "health check");
    assert.deepEqual(check, { step: "health check", state: "unknown", found: "forbidden" });
  });

  it("the page of a node shows what the BMC has shown, and never a password in an address", () => {
    const [own] = OVERVIEW_OF_FENCE.targets as ReturnType<typeof target>[];
    assert.ok(own);
    own.spec.devices = [
      { address: "redfish://root:calvin@bmc-1/redfish/v1", credentialsSecretRef: { name: "s" }, level: 1 },
    ];
    const [evidence] = nodePage(OVERVIEW_OF_FENCE, "w1", UNDECIDED)?.evidence ?? [];
    assert.deepEqual(evidence?.devices, ["redfish://bmc-1/redfish/v1 (level 1)"]);
    assert.ok(evidence?.facts.some(({ what, found }) => what.startsWith("identity pinned") && found === "4c4c"));
  });

  it("the page of a node is not there for a node that nothing knows", () => {
    assert.equal(nodePage(OVERVIEW_OF_FENCE, "w2", UNDECIDED), undefined);
  });
});
