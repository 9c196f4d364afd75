import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createHealthCheck } from "./health-check.ts";
import { World } from "./world.ts";

describe("a node whose only step has no time-out and fails again and again", () => {
  it("a node whose only step has no time-out and fails again and again is tried again after waits that double", () =>
    World.run({ detector: true }, async (world) => {
      const strategy = { retryLimit: 0, powerOffTimeout: "60s", timeout: "60s" };
      const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "10s" }];
      createHealthCheck(world, { strategy }, { spec: { unhealthyConditions, minHealthy: 0 } });
      await world.clock.advance(10_000);
      world.rack.host("n1").failDisk();
      const offsMs: number[] = [];
      world.rack.subscribe((event) => {
        if (event.type === "ordered" && event.outcome === "Started" && event.order === "ForceOff") {
          offsMs.push(world.clock.nowMs());
        }
      });
      await world.until("it is tried four times", () => offsMs.length === 4, 3 * 3_600_000);
      const waits = offsMs.slice(1).map((atMs, index) => Math.floor((atMs - (offsMs[index] ?? NaN)) / 600_000));
      assert.deepEqual(waits, [1, 2, 4], "tens of minutes");
    }));
});
