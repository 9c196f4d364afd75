import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { judgeDisconnection } from "../../../../src/cli/dashboard/view/disconnection.ts";
import type { DisconnectionFacts } from "../../../../src/cli/dashboard/view/disconnection.ts";
import { STATE_NAMES } from "../../../../src/remediator/machine/model/decision/state.ts";
import { AT } from "../overview-fixture.ts";
import { node, remediation, target } from "./fixture.ts";

const RESTING = target("w1", { reason: "Maintenance", maintenance: true });
/** A dead worker whose target is in maintenance, which the agent has confirmed. */
const SAFE: DisconnectionFacts = {
  nodeName: "w1",
  node: node("w1", "Unknown"),
  targets: [RESTING],
  remediations: [],
  unread: undefined,
};
const owner = { uid: "other", kind: "BareMetalRemediation", namespace: "n", name: "r", since: AT };

describe("a plug may be pulled by hand", () => {
  it("a plug may be pulled by hand if the agent has confirmed maintenance, the node is not Ready and nothing is under way", () => {
    assert.equal(judgeDisconnection(SAFE).safe, true);
    assert.match(judgeDisconnection(SAFE).why, /recover-by-hand/);
  });

  it("a plug may be pulled by hand also if a fence has stopped for maintenance before its proof, or has not begun", () => {
    for (const phase of ["PoweringOff", "Verifying", "Resolving"]) {
      assert.equal(
        judgeDisconnection({ ...SAFE, remediations: [remediation("w1", phase, "Maintenance")] }).safe,
        true,
        phase,
      );
    }
  });
});

describe("a plug must not be pulled", () => {
  const cases: [when: string, changed: Partial<DisconnectionFacts>, says: RegExp][] = [
    ["while power orders are not held", { targets: [target("w1")] }, /set spec\.maintenance/],
    [
      "before the agent has confirmed maintenance",
      { targets: [target("w1", { reason: "BMCTimeout", maintenance: true })] },
      /has not confirmed/,
    ],
    [
      "if the agent has confirmed only an earlier spec",
      { targets: [target("w1", { reason: "Maintenance", maintenance: true, observed: 1 })] },
      /has not confirmed/,
    ],
    [
      "before a fence has stopped for maintenance",
      { remediations: [remediation("w1", "PoweringOff", "PoweringOff")] },
      /has not stopped/,
    ],
    ["while the node is Ready", { node: node("w1") }, /is Ready/],
    [
      "at a control plane node",
      { node: node("w1", "Unknown", { "node-role.kubernetes.io/control-plane": "" }) },
      /quorum/,
    ],
    ["if the node has no condition Ready", { node: { ...node("w1"), status: {} } }, /no condition Ready/],
    ["if nothing shows what runs on the host", { node: undefined }, /there is no node/],
    ["without a target", { targets: [] }, /no FencingTarget/],
    ["if two targets name the node", { targets: [RESTING, RESTING] }, /2 FencingTargets/],
    [
      "if something else owns the host",
      { targets: [{ ...RESTING, status: { ...RESTING.status, owner } }] },
      /is owned by/,
    ],
    ["if something cannot be read", { unread: "nodes is forbidden" }, /nodes is forbidden/],
    [
      "in a phase that the agent does not know",
      { remediations: [remediation("w1", "Later", "Maintenance")] },
      /not known/,
    ],
  ];
  for (const [when, changed, says] of cases) {
    it(`a plug must not be pulled ${when}`, () => {
      const { safe, why } = judgeDisconnection({ ...SAFE, ...changed });
      assert.equal(safe, false);
      assert.match(why, says);
    });
  }

  it("a plug must not be pulled while the proof of Off, a boot or an undo depends on the power of the host, whatever else holds", () => {
    const phases = ["Releasing", "Provisioning", "PoweringOn", "Rejoining", "Restoring", "Undoing"];
    for (const phase of phases) {
      const advice = judgeDisconnection({ ...SAFE, remediations: [remediation("w1", phase, "Maintenance")] });
      assert.equal(advice.safe, false, phase);
      assert.match(advice.why, /wait for the verdict/, phase);
    }
  });

  it("a plug must not be pulled without a confirmed maintenance, whatever the phase, the reason and the node", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...STATE_NAMES),
        fc.constantFrom("Maintenance", "Paused", "BMCTimeout"),
        fc.constantFrom("True", "False", "Unknown"),
        fc.constantFrom<[boolean, number]>([false, 2], [true, 1]),
        (phase, reason, ready, [maintenance, observed]) => {
          const facts = {
            ...SAFE,
            node: node("w1", ready),
            targets: [target("w1", { reason: "Maintenance", maintenance, observed })],
            remediations: [remediation("w1", phase, reason)],
          };
          assert.equal(judgeDisconnection(facts).safe, false);
        },
      ),
    );
  });
});
