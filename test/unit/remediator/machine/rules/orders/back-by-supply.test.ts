import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptSnapshot } from "../../../../../../src/remediator/machine/model/facts/snapshot.ts";
import { backBySupply } from "../../../../../../src/remediator/machine/rules/orders/power-orders.ts";

/** A host whose outlets were ordered on at 1,000, with its node in a boot after it. */
function snapshotOf({ boot = "b2", before = "b1", renewedAtMs = 2_000, supplied = true, action = "On" } = {}) {
  const snapshot = {
    observations: {
      order: { action, atMs: 1_000 },
      power: { last: { state: "Unknown", raw: "", atMs: 1_500, ...(supplied && { supplied }) } },
      lease: { renewedAtMs },
    },
    status: { node: { name: "n1", bootID: before } },
    node: { status: { nodeInfo: { bootID: boot } } },
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
