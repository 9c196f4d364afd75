import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { World } from "./world.ts";

describe("a watch that lags", () => {
  it("does not make a remediation begin anew that has its verdict: it would take the host for good", () =>
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
});
