import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { ORDERS_MAX } from "../../src/remediator/machine/rules/orders/power-orders.ts";
import { bears, NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOffTimeout: "120s", drainTimeout: "600s", timeout: "60s" };

/** Fences n1, which switches itself on again each time, until the remediation has failed. */
async function failToKeepOff(world: World, strategy: Record<string, unknown>): Promise<void> {
  await world.holdPod();
  const stop = keepOn(world);
  world.remediate("n1", strategy);
  await world.phase("n1", "Failed");
  stop();
}

describe("a host that switches itself on again each time it is off, and whose system does not come up", () => {
  it("a host that switches itself on again each time is not cut off forever: the attempt fails with its reason, and the host stays on, without marks", () =>
    World.run({}, async (world) => {
      await failToKeepOff(world, QUICK);
      assert.equal(world.condition("n1", "Succeeded"), "False HostTurnsItselfOn");
      assert.equal(offOrders(world), ORDERS_MAX);
      assert.match(world.rack.host("n1").power, /On/);
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
      world.freePod();
      world.assertClean();
    }));

  it("a host that switches itself on again each time it is off, and whose system does not come up, is ordered off after longer and longer pauses", () =>
    World.run({}, async (world) => {
      await failToKeepOff(world, QUICK);
      const times = world.devices.calls.filter(({ call }) => call === "ForceOff").map(({ atMs }) => atMs);
      const [first = 0, second = 0, third = 0] = times.slice(1).map((atMs, i) => atMs - (times[i] ?? 0));
      assert.ok(first < second && second < third, `${first}, ${second}, ${third} ms`);
      world.freePod();
    }));

  it("a host that switches itself on again each time it is off, and whose system does not come up, is not cut off more often by an agent that is restarted in between", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      // A process that has just started waits 22 s for the node lease. Only a host that was proven off is reported as
      // powered on by another client.
      const stop = keepOn(world, 25_000);
      world.remediate("n1", QUICK);
      for (let seen = 1; seen <= ORDERS_MAX; seen += 1) {
        await world.until(`order ${seen}`, () => offOrders(world) >= seen);
        await world.killAgent();
        world.startAgent();
      }
      await world.phase("n1", "Failed");
      stop();
      assert.equal(world.condition("n1", "Succeeded"), "False HostTurnsItselfOn");
      assert.equal(offOrders(world), ORDERS_MAX);
      world.freePod();
      world.assertClean();
    }));

  it("a host that switches itself on again each time it is off, and whose system does not come up, is not reprovisioned either: its reboots did not last", () =>
    World.run({}, async (world) => {
      await failToKeepOff(world, { ...QUICK, type: "Escalate" });
      assert.equal(world.condition("n1", "Succeeded"), "False RebootsNotProven");
      assert.equal(world.devices.calls.filter(({ call }) => call === "setBootOverride").length, 0);
      world.freePod();
      world.assertClean();
    }));
});

describe("a host that switches itself on again, and whose node is Ready then", () => {
  it("a host that switches itself on again, and whose node is Ready then, has been rebooted: its remediation ends as a success", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      const stop = keepOn(world);
      world.rack.host("n1").replaceDisk();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Succeeded");
      stop();
      assert.ok(offOrders(world) < ORDERS_MAX);
      assert.ok(world.isReady("n1"));
      world.freePod();
      world.assertClean();
    }));
});

describe("a host that heeds no order to power on", () => {
  it("a host that ignores orders to power on gets a few, at growing intervals, from the remediation and from the undo; the verdict says that it is off", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", { ...QUICK, powerOnTimeout: "300s" });
      await world.phase("n1", "PoweringOn");
      world.rack.bmc("n1").orderDelayMs = 10_000_000;
      await world.phase("n1", "Undoing");
      // The undo may have sent its first order when its phase is seen.
      assert.ok([ORDERS_MAX, ORDERS_MAX + 1].includes(onOrders(world)), `${onOrders(world)} orders`);
      await world.phase("n1", "Failed");
      assert.equal(onOrders(world), 2 * ORDERS_MAX);
      assert.equal(world.condition("n1", "Succeeded"), "False PowerOnTimeout");
      const succeeded = world.remediation("n1")?.status?.conditions?.find(({ type }) => type === "Succeeded");
      assert.match(succeeded?.message ?? "", /may still be OFF/);
      world.assertClean();
    }));

  it("a remediation that is being deleted keeps ordering its host on every few minutes while the host ignores the orders", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", QUICK);
      await world.phase("n1", "PoweringOn");
      const bmc = world.rack.bmc("n1");
      bmc.orderDelayMs = 10_000_000;
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      await world.clock.advance(3_600_000);
      const orders = onOrders(world);
      assert.ok(orders > ORDERS_MAX && orders < 25, `${orders} orders in an hour`);
      bmc.orderDelayMs = 0;
      await world.until("it is gone", () => world.remediation("n1") === undefined, 400_000);
      assert.match(world.rack.host("n1").power, /On/);
      world.assertClean();
    }));
});

/** Powers n1 on again each time, `afterMs` after it is off. @returns a function that ends this. */
function keepOn(world: World, afterMs = 3_000): () => void {
  world.rack.host("n1").failDisk();
  const timers = new Set<{ cancel(): void }>();
  const stop = world.rack.subscribe((event) => {
    if (event.host !== "n1" || event.type !== "powerChanged" || event.power !== "Off") return;
    timers.add(world.clock.schedule(afterMs, () => world.otherClientOrders("n1", "On")));
  });
  return () => {
    stop();
    for (const timer of timers) timer.cancel();
  };
}

function offOrders(world: World): number {
  return world.devices.calls.filter(({ call }) => call === "ForceOff").length;
}

function onOrders(world: World): number {
  return world.devices.calls.filter(({ call }) => call === "On").length;
}
