import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptSnapshot } from "../../../../../../src/remediator/machine/model/facts/snapshot.ts";
import { backBySupply } from "../../../../../../src/remediator/machine/rules/orders/power-orders.ts";

/** A host whose outlets were ordered on at 1,000, with its node in a boot after it. */
function snapshotOf({
  boot = "b2",
  before = "b1",
  renewedAtMs = 2_000,
  supplied = true,
  action = "On",
  isKnown = true,
} = {}) {
  const snapshot = {
    observations: {
      order: isKnown ? { action, atMs: 1_000 } : undefined,
      power: { last: { state: "Unknown", raw: "", atMs: 1_500, ...(supplied && { supplied }) } },
      lease: { renewedAtMs },
    },
    status: { node: { name: "n1", bootID: before } },
    node: { status: { nodeInfo: { bootID: boot } } },
    attempt: { action, sent: true },
    intentAtMs: 1_000,
  };
  return snapshot as unknown as AttemptSnapshot;
}

test("a host whose BMC is dead is back if its node renews its lease in another boot since its outlets are on", () => {
  assert.ok(backBySupply(snapshotOf()));
  assert.equal(backBySupply(snapshotOf({ boot: "b1" })), undefined, "the same boot");
  assert.equal(backBySupply(snapshotOf({ renewedAtMs: 999 })), undefined, "renewed before the order");
  assert.equal(backBySupply(snapshotOf({ supplied: false })), undefined, "an outlet is off");
  assert.equal(backBySupply(snapshotOf({ action: "ForceOff" })), undefined, "not ordered on");
});

test("a process that has not sent the power-on itself takes the time of its intent", () => {
  assert.ok(backBySupply(snapshotOf({ isKnown: false })));
  assert.equal(backBySupply(snapshotOf({ isKnown: false, renewedAtMs: 999 })), undefined, "renewed before it");
  assert.equal(backBySupply(snapshotOf({ isKnown: false, action: "ForceOff" })), undefined, "not ordered on");
});
