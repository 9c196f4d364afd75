import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { CallFault } from "./rack-driver.ts";
import { NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOffTimeout: "30s", powerOnTimeout: "30s", drainTimeout: "20s", timeout: "60s" };

/** The second device of n1 accepts no order and always reports On. */
function deafTwin(_agent: string, what: string): CallFault | undefined {
  if (what === "ForceOff n1" || what === "On n1") return { error: "Refused" };
  return what === "readPower n1" ? { lie: "staleOn" } : undefined;
}

describe("an undo of a host with two power devices", () => {
  it("an undo of a host with two power devices leaves neither of them off, though one refused the order and reads On", () =>
    World.run({ interference: { call: deafTwin } }, async (world) => {
      // Both BMCs control host n1, and its target names both: one that executes orders and one that does not.
      world.rack.bmc("n2").rewire(world.rack.host("n1"));
      const targets = world.server.collection(FENCING_TARGETS);
      targets.delete({ namespace: NAMESPACE, name: "n2" });
      const devices = ["n2", "n1"].map((bmc) => ({
        address: `redfish://${bmc}`,
        credentialsSecretRef: { name: "bmc" },
        timeouts: { call: "2s" },
      }));
      targets.mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { devices } });
      await world.hang("n1");
      world.remediate("n1", QUICK);
      await world.until("the one is off", () => world.rack.host("n1").power === "Off");
      await world.phase("n1", "Failed");
      assert.deepEqual(world.markLog, [], "a host of which one device reads On is not proven off");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(world.rack.host("n1").power, "On");
      world.assertClean();
    }));
});
