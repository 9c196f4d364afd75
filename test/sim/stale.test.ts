import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { play } from "./explore/play.ts";
import { scenario } from "./explore/scenarios.ts";
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
