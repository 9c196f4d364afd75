import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

// Without its Secret, the agent cannot log in to a BMC, so it can do nothing to the host until it can read the Secret
// again.

const SHORT = { retryLimit: 0, powerOffTimeout: "30s", drainTimeout: "60s", powerOnTimeout: "30s" };

for (const status of [403, 504]) {
  describe(`a Secret that answers ${status} after a restart`, () => {
    async function fence(world: World): Promise<{ asked: () => number }> {
      await world.holdPod();
      world.remediate("n1", SHORT);
      await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
      await world.killAgent();
      const match = { resource: "secrets", client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status } });
      let asked = 0;
      world.server.onRequest(({ path }) => (asked += path.includes("/secrets/") ? 1 : 0));
      return { asked: () => asked };
    }

    it(`a Secret that answers ${status} after a restart is asked for now and then, and the host that it keeps off is reported`, () =>
      World.run({}, async (world) => {
        const { asked } = await fence(world);
        world.startAgent();
        await world.until("the taint is off", () => world.markLog.includes("n1 -taint"), 30_000);
        await world.clock.advance(180_000);
        assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
        assert.ok(asked() < 400, `${asked()} requests in three minutes`);
        world.server.faults.clear();
        world.observer.disturb();
        world.freePod();
        await world.phase("n1", "Succeeded", 300_000);
        world.assertClean();
      }));

    it(`a Secret that answers ${status} after a restart does not end an undo, which powers the host on as soon as the Secret can be read`, () =>
      World.run({}, async (world) => {
        await fence(world);
        const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
        const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
        remediations.mergePatch({ namespace: NAMESPACE, name: "n1" }, { metadata: { annotations } });
        world.startAgent();
        await world.clock.advance(300_000);
        assert.equal(world.remediation("n1")?.status?.phase, "Undoing");
        assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
        world.server.faults.clear();
        world.observer.disturb();
        await world.phase("n1", "Failed", 120_000);
        assert.equal(world.powerLog.at(-1), "n1 On");
        world.freePod();
      }));
  });
}
