import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { play } from "./explore/play.ts";
import { scenario } from "./explore/scenarios.ts";
import { createHealthCheck } from "./health-check.ts";
import { World } from "./world.ts";

describe("a watch that lags", () => {
  it("a watch that lags does not restart a remediation that has its verdict: it would keep the host forever", () =>
    World.run({}, async (world) => {
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      const match = { client: "agent", pathPrefix: "/apis/ironfence.io/v1alpha1/baremetalremediations" };
      world.server.faults.lagWatches(match, 3_000);
      world.remediate("n1");
      await world.phase("n1", "Failed", 5_000);
      assert.equal(world.condition("n1", "Succeeded"), "False IdentityMismatch");
      await world.clock.advance(10_000);
      world.assertClean();
    }));

  it("a watch that lags does not make the agent release a deleted remediation again and again", async () => {
    const held = { at: "event", index: 57, holdMs: 20_000, how: "show" } as const;
    const { violations, effects } = await play({ ...scenario("metal3Asked", 804_000_000), faults: [held] });
    assert.deepEqual(violations, []);
    assert.ok(effects.length < 100, `${effects.length} effects`);
  });

  it("a watch that lags and shows a remediation after its end does not make the remediation claim the host", async () => {
    const late = { detected: 21, massOutage: 30, metal3Checked: 26 };
    for (const [name, index] of Object.entries(late)) {
      const held = { at: "event", index, holdMs: 20_000, how: "show" } as const;
      const { violations } = await play({ ...scenario(name, 803_000_000), faults: [held] });
      assert.deepEqual(violations, [], name);
    }
  });
});

describe("a silent watch that the detector and the remediator share", () => {
  const CONTROL_PLANE = { "node-role.kubernetes.io/control-plane": "" };
  const REMEDIATIONS = "/apis/ironfence.io/v1alpha1/baremetalremediations";
  const silence = (world: World): void =>
    world.server.faults.lagWatches({ client: "agent", pathPrefix: REMEDIATIONS }, Infinity);
  const check = (world: World): void => {
    const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "1s" }];
    createHealthCheck(world, { strategy: { type: "Reboot" } }, { spec: { unhealthyConditions, minHealthy: 0 } });
  };

  it("a health check that begins while the watch of remediations is silent fences no second control plane node", () =>
    World.run({ detector: true, labels: CONTROL_PLANE }, async (world) => {
      silence(world);
      await world.hang("n2");
      world.remediate("n1");
      check(world);
      await world.clock.advance(20_000);
      assert.equal(world.remediation("n2"), undefined, "n1 has a remediation");
      world.server.faults.clear();
    }));

  // The detector does not see the remediation of n1 and creates one of n2. The remediator sees both at the same time,
  // and begins one after the other.
  it("a silent watch of remediations does not let two control plane nodes be fenced at once, though both halves share it", () =>
    World.run({ detector: true, labels: CONTROL_PLANE, hosts: ["n1", "n2", "n3"] }, async (world) => {
      check(world);
      await world.clock.advance(5_000);
      silence(world);
      world.remediate("n1");
      await world.hang("n2");
      await world.until("n2 has a remediation", () => world.remediation("n2") !== undefined);
      assert.equal(world.remediation("n1")?.status, undefined, "neither half has seen it");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n2 ForceOff", "n2 On", "n1 ForceOff", "n1 On"]);
      world.server.faults.clear();
    }));
});
