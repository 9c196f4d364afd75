import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Topology } from "../../src/bmc/topology/topology.ts";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import { forever, hasCode, openFake, redfishError, RESET, startFakeBmc } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

// Faults of hardware that no client can fix; docs/reference/bmc-quirks.md describes their effects.

const CHASSIS_CONTROL = "ChassisControl";

describe("an IPMI off that goes soft first (OpenBMC)", () => {
  it("an IPMI off that goes soft first (OpenBMC) does not count as Off until the host is off, however long that takes, and is not repeated for it", async () => {
    await using world = await startIpmiWorld({ host: { powerOffDelayMs: 900 } });
    const device = world.open();
    await device.identify(forever());
    await device.forceOff(forever());
    assert.equal((await device.readPower(forever())).state, "On");
    const wait = { clock: world.clock, pollMs: 330, timeoutMs: 10_000, freshReads: 2 };
    const proof = await waitForPower(device, "Off", wait, forever());
    assert.ok(proof.proven);
    assert.equal(world.host.power, "Off");
    assert.deepEqual(
      world.host.orders.map(({ type }) => type),
      ["ForceOff"],
    );
  });
});

describe("firmware that refuses off in POST", () => {
  it("a power-off that firmware refuses in POST fails with Refused or Busy over Redfish, and may be tried again", async () => {
    for (const [status, id, code] of [
      [400, "iLO.2.14.UnableToModifyDuringSystemPOST", "Busy"],
      [409, "Base.1.8.ResourceInUse", "Refused"],
      [503, "Base.1.8.ServiceTemporarilyUnavailable", "Busy"],
    ] as const) {
      await using bmc = await startFakeBmc();
      let inPost = true;
      bmc.override = ({ path }) => (path === RESET && inPost ? redfishError(status, id) : undefined);
      await using device = openFake(bmc);
      await assert.rejects(device.forceOff(forever()), hasCode(code));
      assert.equal((await device.readPower(forever())).state, "On");
      inPost = false;
      await device.forceOff(forever());
      assert.equal((await device.readPower(forever())).state, "Off");
    }
  });

  it("a power-off that firmware refuses in POST fails with Refused over IPMI, and may be tried again", async () => {
    await using world = await startIpmiWorld();
    const device = world.open();
    world.mock.addFault({
      steps: [CHASSIS_CONTROL],
      times: 1,
      action: { type: "completionCode", completionCode: 0xd5 },
    });
    await assert.rejects(device.forceOff(forever()), hasCode("Refused"));
    assert.equal(world.host.power, "On");
    await device.forceOff(forever());
    assert.deepEqual(
      world.host.orders.map(({ type }) => type),
      ["ForceOff"],
    );
  });
});

describe("a BMC that is gone together with its host", () => {
  it("a BMC that is gone together with its host proves nothing: its host's power supply fed it, and unreachable is not off", async () => {
    await using world = await startIpmiWorld();
    const device = world.open({ callTimeoutMs: 2_000, connectTimeoutMs: 2_000 });
    await device.identify(forever());
    world.host.cutMains();
    const wait = { clock: world.clock, pollMs: 330, timeoutMs: 1_500, freshReads: 2 };
    const proof = await waitForPower(device, "Off", wait, forever());
    assert.ok(!proof.proven);
  });

  it("a BMC that is gone together with its host proves nothing: its NC-SI link went with the host; a second level of its own power and network does", async () => {
    await using shared = await startIpmiWorld();
    await using own = await startIpmiWorld();
    const device = shared.open({ callTimeoutMs: 500, connectTimeoutMs: 500 });
    const outlet = own.open();
    const topology = new Topology(
      [
        { level: 1, driver: device },
        { level: 2, driver: outlet },
      ],
      () => ({ verified: true, message: "it is the host" }),
    );
    await topology.forceOff(forever());
    shared.bmc.setReachability("silent");
    const wait = { clock: shared.clock, pollMs: 330, timeoutMs: 1_500, freshReads: 2 };
    assert.ok(!(await waitForPower(device, "Off", wait, forever())).proven);
    // Level 1 has shown no effect, so the next order goes to the other level.
    await topology.forceOff(forever());
    assert.ok((await waitForPower(topology, "Off", { ...wait, timeoutMs: 5_000 }, forever())).proven);
    assert.equal(own.host.power, "Off");
  });
});

describe("a BMC that hangs", () => {
  it("a BMC that hangs is never restarted by a failing call: that is left to a person", async () => {
    await using bmc = await startFakeBmc();
    bmc.override = ({ path }) => (path === RESET ? "hang" : undefined);
    await using device = openFake(bmc, { callTimeoutMs: 300 });
    await assert.rejects(device.forceOff(forever()), hasCode("Timeout"));
    assert.ok(!bmc.log().some((line) => /Manager\.Reset/.test(line)), bmc.log().join("\n"));
  });
});
