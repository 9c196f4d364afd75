import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { World } from "./world.ts";

/** Two hosts whose BMC addresses somebody has mixed up. */
function swap(world: World): void {
  const [n1, n2] = [world.rack.host("n1"), world.rack.host("n2")];
  world.rack.bmc("n1").rewire(n2);
  world.rack.bmc("n2").rewire(n1);
}

describe("a rack whose BMC addresses are swapped", () => {
  it("is never powered: both remediations fail, and say that another host answers", () =>
    World.run({}, async (world) => {
      swap(world);
      for (const name of ["n1", "n2"]) {
        await world.hang(name);
        world.remediate(name, { type: "Reboot", retryLimit: 0, timeout: "60s" });
      }
      for (const name of ["n1", "n2"]) {
        await world.phase(name, "Failed");
        assert.equal(world.condition(name, "Succeeded"), "False IdentityMismatch");
      }
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual(
        world.rack.hosts.flatMap((host) => host.orders),
        [],
      );
      world.assertClean();
    }));

  it("shows at the next probe, long before a fence is needed", () =>
    World.run({}, async (world) => {
      swap(world);
      const ready = (name: string): string | undefined =>
        world.target(name)?.status?.conditions?.find(({ type }) => type === "Ready")?.reason;
      const bothSaySo = (): boolean => ready("n1") === "Mismatch" && ready("n2") === "Mismatch";
      await world.until("both targets are not Ready", bothSaySo, 1_200_000);
      assert.deepEqual(world.powerLog, []);
    }));
});
