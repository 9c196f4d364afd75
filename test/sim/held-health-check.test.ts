import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { createHealthCheck } from "./health-check.ts";
import { World } from "./world.ts";

/** The counts of health checks by state and reason, without zeros. */
async function counted(world: World): Promise<string[]> {
  const lines = (await world.metrics("ironfence_health_checks")).split("\n");
  return lines.flatMap((line) => /\{state="(\w+)",reason="(\w+)"\} [1-9]/.exec(line)?.slice(1).join(" ") ?? []);
}

function createCheck(world: World, spec: Record<string, unknown>): void {
  const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "10s" }];
  createHealthCheck(world, { strategy: { type: "Reboot" } }, { spec: { unhealthyConditions, ...spec } });
}

describe("the metric of a health check that is held", () => {
  it("the metric of a health check that is held shows a threshold that is not met, and clears when enough nodes are healthy", () =>
    World.run({ detector: true }, async (world) => {
      createCheck(world, { minHealthy: "100%" });
      await world.clock.advance(5_000);
      assert.deepEqual(await counted(world), ["Enabled ThresholdTooHigh"]);
      await world.hang("n1");
      await world.clock.advance(60_000);
      assert.deepEqual(await counted(world), ["Enabled ThresholdHolds"]);
      assert.equal(world.remediation("n1"), undefined);
      world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { minHealthy: "1%" } });
      await world.until("n1 is remediated", () => world.remediation("n1") !== undefined);
      await world.clock.advance(2_000);
      assert.deepEqual(await counted(world), ["Remediating None"]);
    }));

  it("the metric of a held health check shows its pause request, and clears when the request is removed", () =>
    World.run({ detector: true }, async (world) => {
      createCheck(world, { minHealthy: 1, pauseRequests: ["upgrade of the firmware"] });
      await world.clock.advance(5_000);
      assert.deepEqual(await counted(world), ["Paused PauseRequested"]);
      world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { pauseRequests: null } });
      await world.clock.advance(5_000);
      assert.deepEqual(await counted(world), ["Enabled None"]);
    }));
});
