import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { HostSpec } from "../../hack/rack/host.ts";
import { HOLDS, holdDuringIdentification } from "./holds.ts";
import { giveOutlets, OUTLETS, storeEnrolment } from "./outlets.ts";
import { NAMESPACE, World } from "./world.ts";

// What can happen to a host after its outlets have cut its mains power and before its power-on.

type RestorePolicy = NonNullable<HostSpec["restorePolicy"]>;

async function withCycle(
  restorePolicy: RestorePolicy,
  test: (world: World) => Promise<void>,
  { strategy = {}, prepare }: { strategy?: object; prepare?: (world: World) => void } = {},
): Promise<void> {
  await World.run({ hosts: [{ name: "n1", restorePolicy }, { name: "n2" }] }, async (world) => {
    giveOutlets(world, "n1");
    storeEnrolment(world, "n1");
    await world.clock.advance(5_000);
    prepare?.(world);
    await world.hang("n1");
    world.remediate("n1", { powerOn: "ACCycle", retryLimit: 0, ...strategy });
    await test(world);
  });
}

const cuts = (world: World): number => world.devices.pdus.orders.filter((order) => order.endsWith("Off")).length;

async function untilCut(world: World): Promise<void> {
  await world.until("both outlets are off", () => cuts(world) === OUTLETS.length);
  await world.clock.advance(2_000);
}

function assertBack(world: World): void {
  assert.equal(world.remediation("n1")?.status?.phase, "Succeeded");
  assert.equal(world.rack.host("n1").power, "On");
}

describe("a host whose outlets cut its mains power for an AC cycle", () => {
  it("a host whose outlets cut its mains power is powered on although a user gives one of them another label meanwhile", () =>
    withCycle("AlwaysOn", async (world) => {
      await untilCut(world);
      world.devices.pdus.outlet(OUTLETS[1]).label = "renamed";
      await world.clock.advance(900_000);
      assertBack(world);
      assert.ok(OUTLETS.every((address) => world.devices.pdus.outlet(address).isOn));
    }));

  it("a host whose outlets cut its mains power is powered on by the outlet that is left if the other is taken from its target meanwhile", () =>
    withCycle("AlwaysOff", async (world) => {
      await untilCut(world);
      const devices = world.target("n1")?.spec.devices.filter(({ address }) => address !== OUTLETS[1]);
      world.server
        .collection(FENCING_TARGETS)
        .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { devices: devices ?? [] } });
      await world.clock.advance(900_000);
      assertBack(world);
    }));

  it("a host whose outlets cut its mains power leaves an outlet alone that another PDU has at its address meanwhile", () =>
    withCycle("AlwaysOn", async (world) => {
      await untilCut(world);
      world.devices.pdus.outlet(OUTLETS[1]).pdu = "SN-OTHER";
      await world.clock.advance(7_200_000);
      assert.deepEqual(
        world.devices.pdus.orders.filter((order) => order.endsWith("On")),
        [],
      );
      const { phase, conditions = [] } = world.remediation("n1")?.status ?? {};
      assert.equal(phase, "Failed");
      assert.match(conditions.map(({ message }) => message).join(), /PDU SN-OTHER now/);
    }));

  it("a host whose outlets cut its mains power is cut off once, although its BMC needs longer to start than a power-on may take", () =>
    withCycle(
      "AlwaysOff",
      async (world) => {
        await world.clock.advance(3_600_000);
        assertBack(world);
        assert.equal(cuts(world), OUTLETS.length);
      },
      {
        strategy: { retryLimit: 1 },
        prepare: (world) => {
          world.devices.pdus.outlet(OUTLETS[0]).onSwitch = (isOn) => {
            if (isOn && !world.rack.host("n1").mains)
              void world.clock.schedule(1, () => world.rack.bmc("n1").restart(360_000));
          };
        },
      },
    ));

  it("a host whose outlets cut its mains power stays off while another unit is chained to its PDU, and is powered on once the unit is alone", () =>
    withCycle("AlwaysOn", async (world) => {
      await untilCut(world);
      world.devices.pdus.disturb("n1", "chained");
      await world.phase("n1", "Failed", 1_200_000);
      const { conditions = [] } = world.remediation("n1")?.status ?? {};
      const message = conditions.map(({ message }) => message).join();
      assert.match(message, /2 chained units answer.*the host may still be OFF: power it on by hand/);
      assert.equal(world.devices.pdus.orders.filter((order) => order.endsWith("On")).length, 0);
      world.devices.pdus.disturb("n1", "well");
      world.remediate("n1", { retryLimit: 0 }, "again");
      await world.phase("again", "Succeeded");
      assert.equal(world.rack.host("n1").power, "On");
    }));

  it("a host whose outlets cut its mains power is powered on by its BMC and its outlets as soon as a unit that was chained is gone", () =>
    withCycle("AlwaysOn", async (world) => {
      await untilCut(world);
      world.devices.pdus.disturb("n1", "chained");
      await world.clock.advance(60_000);
      world.devices.pdus.disturb("n1", "well");
      await world.until(
        "the outlets are on",
        () => OUTLETS.every((address) => world.devices.pdus.outlet(address).isOn),
        60_000,
      );
      await world.phase("n1", "Succeeded");
      assert.equal(cuts(world), OUTLETS.length);
    }));

  for (const [what, store] of [
    ["drops what is stored of an AC cycle", { acCycle: null }],
    ["stores a state of its own for a minute", { phase: "Of9.9.9-PoweringOn" }],
  ] as const)
    it(`a host whose outlets cut its mains power is cut off once and powered on if an agent of another build ${what}`, () =>
      withCycle("AlwaysOn", async (world) => {
        await untilCut(world);
        await world.killAgent();
        const write = (status: object): void => {
          const key = { namespace: NAMESPACE, name: "n1" };
          world.server.collection(BARE_METAL_REMEDIATIONS).mergePatch(key, { status }, "status");
        };
        write(store);
        world.startAgent();
        await world.clock.advance(60_000);
        if ("phase" in store) write({ phase: "PoweringOn" });
        await world.phase("n1", "Succeeded");
        assert.equal(cuts(world), OUTLETS.length);
        assert.ok(OUTLETS.every((address) => world.devices.pdus.outlet(address).isOn));
      }));

  for (const [what, hold] of Object.entries(HOLDS))
    it(`a host keeps its mains power if ${what} while its outlets are identified for an AC cycle`, () =>
      withCycle(
        "AlwaysOn",
        async (world) => {
          await world.until(
            "the AC cycle is over",
            () => world.remediation("n1")?.status?.acCycle?.result !== undefined,
          );
          assert.equal(world.remediation("n1")?.status?.acCycle?.result, "NotSent");
          assert.deepEqual(world.devices.pdus.orders, []);
        },
        {
          prepare: (world) =>
            holdDuringIdentification(world, hold, () => world.remediation("n1")?.status?.acCycle !== undefined),
        },
      ));
});
