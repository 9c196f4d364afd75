import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { FINALIZER } from "../../src/remediator/effects/objects/finalizer.ts";
import { NAMESPACE, World } from "./world.ts";

const KEY = { namespace: NAMESPACE, name: "n1" };
const QUICK = { retryLimit: 0, powerOffTimeout: "30s", powerOnTimeout: "30s", drainTimeout: "20s", timeout: "60s" };
const RACK = "example.com/rack";

const finalizersOf = (world: World): readonly string[] | undefined => world.remediation("n1")?.metadata.finalizers;

/** Deletes the remediation while no agent runs. @returns whether it is gone. */
async function goesWithoutAgent(world: World): Promise<boolean> {
  await world.killAgent();
  world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
  await world.clock.advance(1_000);
  return world.remediation("n1") === undefined;
}

describe("a remediation that has its verdict", () => {
  it("a remediation that has its verdict can be deleted without any agent after a success", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      await world.clock.advance(5_000);
      assert.deepEqual(finalizersOf(world) ?? [], []);
      assert.equal(await goesWithoutAgent(world), true);
      world.assertClean();
    }));

  it("a remediation that has its verdict can be deleted without any agent after a failure", () =>
    World.run({}, async (world) => {
      world.rack.host("n1").failDisk();
      await world.until("n1 is not Ready", () => !world.isReady("n1"));
      world.remediate("n1", QUICK);
      await world.phase("n1", "Failed");
      await world.clock.advance(5_000);
      assert.equal(await goesWithoutAgent(world), true);
      world.assertClean();
    }));

  it("a remediation that has its verdict is released by the next agent if an earlier version has kept it", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      await world.killAgent();
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      remediations.mergePatch(KEY, { metadata: { finalizers: [FINALIZER, "example.com/audit"] } });
      world.startAgent();
      await world.clock.advance(5_000);
      assert.deepEqual(finalizersOf(world), ["example.com/audit"]);
    }));

  it("a remediation that has its verdict is kept for the labels of a node that it deleted, until that has them back", () =>
    World.run({}, async (world) => {
      world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { labels: { [RACK]: "r7" } } });
      const host = world.rack.host("n1");
      host.failDisk();
      await world.until("n1 is not Ready", () => !world.isReady("n1"));
      world.remediate("n1", { ...QUICK, workloadRelease: "DeleteNode" });
      await world.phase("n1", "Failed");
      await world.clock.advance(5_000);
      assert.deepEqual(finalizersOf(world), [FINALIZER]);
      host.replaceDisk();
      world.otherClientOrders("n1", "ForceOff");
      await world.clock.advance(20_000);
      world.otherClientOrders("n1", "On");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      await world.clock.advance(5_000);
      assert.equal(world.node("n1")?.metadata.labels?.[RACK], "r7");
      assert.deepEqual(finalizersOf(world) ?? [], []);
      assert.equal(await goesWithoutAgent(world), true);
    }));
});
