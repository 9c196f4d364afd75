import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

// No standard limits how long a BMC may take to execute an accepted order.

/** Remediates n1, whose BMC carries the power-off out late, and every later order at once. */
async function orderLate(world: World, lateMs: number, strategy: Record<string, unknown>): Promise<void> {
  world.rack.bmc("n1").orderDelayMs = lateMs;
  world.remediate("n1", strategy);
  await world.until("the BMC has the order", () => world.remediation("n1")?.status?.attempt?.sent === true);
  world.rack.bmc("n1").orderDelayMs = 0;
}

describe("a power-off that its BMC carries out very late", () => {
  for (const lateMs of [31_000, 60_000, 120_000]) {
    it(`a host whose node came back is not left off by a power-off that its BMC carries out after ${lateMs / 1_000} s`, () =>
      World.run({}, async (world) => {
        await orderLate(world, lateMs, { retryLimit: 0, powerOffTimeout: "5m" });
        world.otherClientOrders("n1", "ForceOff");
        await world.clock.advance(3_000);
        world.otherClientOrders("n1", "On");
        await world.until("n1 is Ready", () => world.isReady("n1"));
        await world.phase("n1", "Succeeded");
        await world.clock.advance(150_000);
        assert.ok(world.isReady("n1"), world.story());
      }));

    it(`a host whose remediation was undone is not left off by a power-off that its BMC carries out after ${lateMs / 1_000} s`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        await orderLate(world, lateMs, { retryLimit: 0, powerOffTimeout: "5m" });
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
        await world.until("it is gone", () => world.remediation("n1") === undefined);
        await world.clock.advance(150_000);
        assert.equal(world.rack.host("n1").power, "On", world.story());
      }));

    it(`a host that a further order has fenced is not left off by a power-off that its BMC carries out after ${lateMs / 1_000} s`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        await orderLate(world, lateMs, { retryLimit: 0, powerOffTimeout: "5m", timeout: "5m" });
        const isFinal = (phase = ""): boolean => ["Succeeded", "Failed"].includes(phase);
        await world.until("it has its verdict", () => isFinal(world.remediation("n1")?.status?.phase), 900_000);
        await world.clock.advance(150_000);
        assert.equal(world.rack.host("n1").power, "On", world.story());
      }));

    it(`a host whose remediation is deleted while it starts is not left off by a power-off that its BMC carries out after ${lateMs / 1_000} s`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        await orderLate(world, lateMs, { retryLimit: 0, powerOffTimeout: "5m", timeout: "5m" });
        const isOnSent = (): boolean => world.remediation("n1")?.status?.phase === "Rejoining";
        await world.until("its host is powered on", isOnSent, 300_000);
        world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
        await world.until("it is gone", () => world.remediation("n1") === undefined, 300_000);
        await world.clock.advance(150_000);
        assert.equal(world.rack.host("n1").power, "On", world.story());
      }));
  }
});
