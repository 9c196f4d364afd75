import assert from "node:assert/strict";
import { it } from "node:test";
import { Metal3World } from "./world.ts";

it("fences a host through its operator: held off, proven by our own look, freed, let go, back", () =>
  Metal3World.run({}, async (world) => {
    world.createPod("n1", "db");
    await world.clock.advance(3_000);
    const host = await world.hang();
    const bootID = host.bootID;
    world.remediate("n1");
    await world.phase("Succeeded");
    assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"], "the operator's orders, and nobody else's");
    assert.deepEqual(world.pods("n1"), []);
    assert.notEqual(host.bootID, bootID);
    assert.equal(world.remediation("n1")?.status?.target?.kind, "BareMetalHost");
    assert.ok(world.bmh().metadata.annotations?.["ironfence.io/last-reboot"]?.includes(bootID));
    world.assertClean();
  }));
