import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, World } from "./world.ts";

// Nodes that come back, by themselves or with the help of a user, while no agent runs or while power-offs are held. The
// outage is over, so no agent powers them off for it.

/** Fences n1 until it has the taint. A pod does not leave. */
async function fence(world: World): Promise<void> {
  await world.holdPod();
  world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
  await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
}

/** The operator fixes n1: removes its taints, powers it on, and releases its pod. */
async function mend(world: World): Promise<void> {
  world.server
    .collection(NODES)
    .mergePatch(
      { name: "n1" },
      { spec: { taints: null }, metadata: { annotations: { "ironfence.io/fenced-by": null } } },
    );
  world.otherClientOrders("n1", "On");
  await world.until("n1 is Ready", () => world.isReady("n1"));
  world.freePod();
}

function hold(world: World, how: "pause" | "maintenance", on: boolean): void {
  const key = { namespace: NAMESPACE, name: "n1" };
  if (how === "pause") world.pause(on);
  else world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: on } });
}

/** Asserts that the remediation succeeds without a further power-off and leaves no marks. */
async function assertSpared(world: World, offs = 1): Promise<void> {
  await world.phase("n1", "Succeeded");
  await world.clock.advance(600_000);
  assert.equal(world.powerLog.filter((order) => order === "n1 ForceOff").length, offs, world.story());
  assert.ok(world.isReady("n1"));
  world.assertClean();
}

describe("a node that came back", () => {
  it("a node that came back while no agent ran, from Releasing, is not powered off again", () =>
    World.run({}, async (world) => {
      await fence(world);
      await world.killAgent();
      await world.clock.advance(60_000);
      await mend(world);
      await world.clock.advance(3_600_000);
      world.startAgent();
      await assertSpared(world);
    }));

  it("a node that came back while no agent ran, from PoweringOff, is not powered off again", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
      await world.until("the order is sent", () => world.remediation("n1")?.status?.attempt?.sent === true);
      await world.killAgent();
      await world.clock.advance(10_000);
      await mend(world);
      await world.clock.advance(60_000);
      world.startAgent();
      await assertSpared(world);
    }));

  it("a node that came back before its BMC carries out a late power-off is powered on again after that", () =>
    World.run({}, async (world) => {
      world.rack.bmc("n1").orderDelayMs = 25_000;
      world.remediate("n1", { retryLimit: 0 });
      await world.until("the BMC has the order", () => world.remediation("n1")?.status?.attempt?.sent === true);
      world.rack.bmc("n1").orderDelayMs = 0;
      world.otherClientOrders("n1", "ForceOff");
      await world.clock.advance(3_000);
      world.otherClientOrders("n1", "On");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      await world.phase("n1", "Succeeded");
      await world.clock.advance(60_000);
      assert.ok(world.isReady("n1"), world.story());
      world.assertClean();
    }));

  it("a node that came back while no agent ran, which does not know whether its order was sent, is not powered off again", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "30m" });
      world.faults.losesAnswer.add("n1 ForceOff");
      await world.until("the order has arrived", () => world.powerLog.length > 0);
      await world.killAgent();
      world.faults.losesAnswer.clear();
      assert.equal(world.remediation("n1")?.status?.attempt?.sent, false);
      await world.clock.advance(10_000);
      await mend(world);
      await world.clock.advance(60_000);
      world.startAgent();
      await assertSpared(world);
    }));

  for (const how of ["pause", "maintenance"] as const) {
    it(`a node that came back during a ${how} is not powered off when that ends`, () =>
      World.run({}, async (world) => {
        await fence(world);
        hold(world, how, true);
        await world.clock.advance(5_000);
        await mend(world);
        await world.clock.advance(3_600_000);
        hold(world, how, false);
        await assertSpared(world);
      }));
  }

  it("a node that came back by a person before the agent has noticed that it is on is not powered off", () =>
    World.run({}, async (world) => {
      await fence(world);
      world.devices.calls.length = 0;
      world.rack.bmc("n1").setReachability("silent");
      await world.clock.advance(5_000);
      await mend(world);
      world.rack.bmc("n1").setReachability("up");
      await assertSpared(world);
    }));

  it("a node that came back as a host that turns itself on is forced off at once while its node is not Ready", () =>
    World.run({}, async (world) => {
      await fence(world);
      world.otherClientOrders("n1", "On");
      await world.until(
        "it is off again",
        () => world.powerLog.filter((order) => order === "n1 ForceOff").length === 2,
      );
      assert.equal(world.isReady("n1"), false);
      world.freePod();
      await world.phase("n1", "Succeeded");
    }));
});
