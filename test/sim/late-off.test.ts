import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

describe("an undo whose power-off was not seen to work", () => {
  it("an undo after a power-off without effect believes an On only if it was read after the order had its time, since an older reading may be stale", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.until("the order is sent", () => world.powerLog.length > 0);
      // The BMC reports On almost until the end of the time that the order has.
      world.rack.bmc("n1").pretendPower("On", 19_700);
      const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
      const key = { namespace: NAMESPACE, name: "n1" };
      world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(key, { metadata: { annotations } });
      await world.phase("n1", "Failed");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});
