import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import type { Observations } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import { NOW, PROVEN, READ_ON, VERIFIED, ordered, node, snapshot } from "../../snapshots.ts";

describe("the count of power-offs", () => {
  const orders = (observations: Partial<Observations>): number | undefined => {
    const attempt = { orders: 2, actionAtMs: NOW.epochMs - 25_000 };
    const fresh = { taintCleared: true, examined: { node: node() }, identity: VERIFIED, ...observations };
    return decide(snapshot({ state: "PoweringOff", attempt, observations: fresh }), NOW).status?.attempt?.orders;
  };

  it("the count of power-offs grows with each order that may have had an effect", () =>
    assert.equal(orders({ power: READ_ON }), 3));

  it("the count of power-offs does not grow with an order that was refused", () =>
    assert.equal(orders({ order: ordered("Rejected", 3_000) }), 2));
});

describe("the intent to boot from the network", () => {
  it("the intent to boot from the network is stored before the boot override is set, so that a restart clears it", () => {
    const observations = { power: PROVEN, identity: VERIFIED };
    const { status, effects } = decide(snapshot({ state: "Provisioning", observations }), NOW);
    assert.deepEqual([status?.attempt?.bootOverride, effects], [true, []]);
  });
});

describe("the intent to power on", () => {
  it("the stored intent to power on is neither sent nor done, so a remediation that ends now still sends the On in time", () => {
    const observations = {
      power: PROVEN,
      swapped: true,
      drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 1, isReported: true },
    };
    const { status } = decide(
      snapshot({ state: "Releasing", observations, strategy: { powerOnTimeoutMs: 90_000 } }),
      NOW,
    );
    const { action, sent, done, orders, deadline = "" } = status?.attempt ?? {};
    assert.deepEqual({ action, sent, done, orders }, { action: "On", sent: false, done: false, orders: 0 });
    assert.equal(Date.parse(deadline), NOW.epochMs + 90_000);
  });
});
