import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { NAMESPACE, World } from "./world.ts";

describe("a node whose only step has no time-out and fails again and again", () => {
  it("a node whose only step has no time-out and fails again and again is tried again after waits that double", () =>
    World.run({ detector: true }, async (world) => {
      const template = { namespace: NAMESPACE, name: "reboot" };
      const strategy = { retryLimit: 0, powerOffTimeout: "60s", timeout: "60s" };
      world.create(BARE_METAL_REMEDIATION_TEMPLATES, template, { spec: { template: { spec: { strategy } } } });
      const kind = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate" };
      const spec = {
        selector: { matchExpressions: [{ key: "no", operator: "DoesNotExist" }] },
        unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "10s" }],
        minHealthy: 0,
        remediationTemplate: { ...kind, ...template },
      };
      world.create(NODE_HEALTH_CHECKS, { name: "all" }, { spec });
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
