import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostIdentity } from "../../src/bmc/identity/host-identity.ts";
import { Topology } from "../../src/bmc/topology/topology.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { CHASSIS, forever, hasCode, ok, openFake, RESET, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json } from "./bmc-fixture.ts";

const TYPES = "ResetType@Redfish.AllowableValues";
const HPE = `${SYSTEM}/Actions/Oem/Hpe/HpeComputerSystemExt.SystemReset/`;
const LENOVO = `${SYSTEM}/Actions/Oem/LenovoComputerSystem.SystemReset`;
const DELL = `${CHASSIS}/Actions/Oem/DellOemChassis.ExtendedReset`;
const NVIDIA = `${CHASSIS}/Actions/Oem/NvidiaChassis.AuxPowerReset`;
const CHASSIS_COLLECTION = "/redfish/v1/Chassis";
const BMC_0 = `${CHASSIS_COLLECTION}/BMC_0`;
const BMC_0_RESET = `${BMC_0}/Actions/Oem/NvidiaChassis.AuxPowerReset`;
const CHASSIS_RESET = `${CHASSIS}/Actions/Chassis.Reset`;

/** The resources of each vendor, and the expected request. */
const VENDORS: Record<string, { system?: Json; chassis?: Json; path: string; body: Json }> = {
  HPE: {
    system: {
      Oem: {
        Hpe: { Actions: { "#HpeComputerSystemExt.SystemReset": { target: HPE, [TYPES]: ["ColdBoot", "AuxCycle"] } } },
      },
    },
    path: HPE,
    body: { ResetType: "AuxCycle" },
  },
  Lenovo: {
    system: {
      Actions: { Oem: { "#LenovoComputerSystem.SystemReset": { target: LENOVO, [TYPES]: ["ACPowerCycle"] } } },
    },
    path: LENOVO,
    body: { ResetType: "ACPowerCycle" },
  },
  Dell: {
    chassis: {
      Actions: {
        "#Chassis.Reset": { target: CHASSIS_RESET, [TYPES]: ["On", "ForceOff", "FullPowerCycle"] },
        Oem: { "#DellOemChassis.ExtendedReset": { target: DELL, [TYPES]: ["PowerCycle"] } },
      },
    },
    path: DELL,
    body: { ResetType: "PowerCycle", FinalPowerState: "Off" },
  },
  NVIDIA: {
    chassis: { Actions: { Oem: { "#NvidiaChassis.AuxPowerReset": { target: NVIDIA, [TYPES]: ["AuxPowerCycle"] } } } },
    path: NVIDIA,
    body: { ResetType: "AuxPowerCycle" },
  },
  "the standard's Chassis": {
    chassis: { Actions: { "#Chassis.Reset": { target: CHASSIS_RESET, [TYPES]: ["On", "FullPowerCycle"] } } },
    path: CHASSIS_RESET,
    body: { ResetType: "FullPowerCycle" },
  },
  "the standard's System": {
    system: { Actions: { "#ComputerSystem.Reset": { target: RESET, [TYPES]: ["On", "ForceOff", "FullPowerCycle"] } } },
    path: RESET,
    body: { ResetType: "FullPowerCycle" },
  },
};

function off(bmc: FakeBmc, { system = {}, chassis = {} }: { system?: Json; chassis?: Json } = {}): void {
  Object.assign(bmc.system, { PowerState: "Off" }, system);
  Object.assign(bmc.chassis, chassis);
  const known = new Set([HPE, LENOVO, DELL, NVIDIA, CHASSIS_RESET, RESET]);
  bmc.override = ({ method, path }) => (method === "POST" && known.has(path) ? { status: 204 } : undefined);
}

/** As GB200 and GB300: the chassis with the action is another one than that to which the System links. */
function giveUnlinked(bmc: FakeBmc, systems: readonly string[]): void {
  off(bmc);
  const ComputerSystems = systems.map((system) => ({ "@odata.id": system }));
  const Oem = { "#NvidiaChassis.AuxPowerReset": { target: BMC_0_RESET, [TYPES]: ["AuxPowerCycle"] } };
  bmc.override = ({ method, path }) => {
    if (path === CHASSIS_COLLECTION) return ok({ Members: [{ "@odata.id": CHASSIS }, { "@odata.id": BMC_0 }] });
    if (path === BMC_0) return ok({ ChassisType: "Module", Links: { ComputerSystems }, Actions: { Oem } });
    return method === "POST" && path === BMC_0_RESET ? { status: 204 } : undefined;
  };
}

/** The requests that were sent, without logins. */
function sent(bmc: FakeBmc): unknown[] {
  return bmc.requests
    .filter(({ method, path }) => method === "POST" && path.includes("/Actions/"))
    .map(({ path, body }) => ({ path, body }));
}

async function cycle(bmc: FakeBmc): Promise<void> {
  await using device = openFake(bmc);
  await device.identify(forever());
  assert.ok(device.acCycle !== undefined);
  await device.acCycle(forever());
}

describe("an AC cycle over Redfish", () => {
  for (const [vendor, { path, body, ...shape }] of Object.entries(VENDORS)) {
    it(`an AC cycle over Redfish uses the action that ${vendor} offers`, async () => {
      await using bmc = await startFakeBmc();
      off(bmc, shape);
      await cycle(bmc);
      assert.deepEqual(sent(bmc), [{ path, body }]);
    });
  }

  it("an AC cycle over Redfish is not sent to a host that is not off", async () => {
    for (const power of ["On", "PoweringOn", null]) {
      await using bmc = await startFakeBmc();
      off(bmc, VENDORS["HPE"]);
      bmc.system["PowerState"] = power;
      await assert.rejects(cycle(bmc), hasCode("Refused"));
      assert.deepEqual(sent(bmc), []);
    }
  });

  it("an AC cycle over Redfish is not sent if the BMC offers none: PowerCycle leaves the standby power on", async () => {
    await using bmc = await startFakeBmc();
    off(bmc);
    await assert.rejects(cycle(bmc), hasCode("Unsupported"));
    assert.deepEqual(sent(bmc), []);
  });

  for (const [what, chassis] of [
    ["is an enclosure", { ChassisType: "Enclosure" }],
    [
      "also names another System",
      { Links: { ComputerSystems: [{ "@odata.id": SYSTEM }, { "@odata.id": "/redfish/v1/Systems/2" }] } },
    ],
    ["names no System", { Links: {} }],
  ] as const) {
    it(`an AC cycle over Redfish is not sent to a chassis that ${what}`, async () => {
      await using bmc = await startFakeBmc();
      off(bmc, { chassis: { ...VENDORS["the standard's Chassis"]?.chassis, ...chassis } });
      await assert.rejects(cycle(bmc), hasCode("Unsupported"));
      assert.deepEqual(sent(bmc), []);
    });
  }

  it("an AC cycle over Redfish is that of the chassis BMC_0 if that names this System alone, which does not link to it", async () => {
    await using bmc = await startFakeBmc();
    giveUnlinked(bmc, [SYSTEM]);
    await cycle(bmc);
    assert.deepEqual(sent(bmc), [{ path: BMC_0_RESET, body: { ResetType: "AuxPowerCycle" } }]);
  });

  for (const [what, systems] of [
    ["also names another System", [SYSTEM, "/redfish/v1/Systems/2"]],
    ["names no System", []],
  ] as const) {
    it(`an AC cycle over Redfish does not use the chassis BMC_0 if that chassis ${what}`, async () => {
      await using bmc = await startFakeBmc();
      giveUnlinked(bmc, systems);
      await assert.rejects(cycle(bmc), hasCode("Unsupported"));
      assert.deepEqual(sent(bmc), []);
    });
  }

  it("an AC cycle over Redfish is sent once if its answer is lost", async () => {
    await using bmc = await startFakeBmc();
    off(bmc, VENDORS["HPE"]);
    bmc.override = ({ method, path }) => (method === "POST" && path === HPE ? "reset" : undefined);
    await assert.rejects(cycle(bmc), hasCode("Unreachable"));
    assert.equal(sent(bmc).length, 1);
  });
});

describe("an AC cycle of a host with several supplies", () => {
  for (const [levels, outcome, cycles] of [
    [[1, 1], "NotSent", 0],
    [[1, 2], "Sent", 1],
  ] as const) {
    it(`an AC cycle of a host with several supplies, on levels ${levels.join(" and ")}, is reported as ${outcome}`, async () => {
      let sent = 0;
      const done = (): Promise<void> => Promise.resolve();
      const device = (address: string): PowerDriver => ({
        address,
        identify: (): Promise<HostIdentity> => Promise.resolve({ serialNumber: "SN-1", device: address }),
        readPower: () => Promise.resolve({ state: "Off" as const, raw: "Off" }),
        forceOff: done,
        on: done,
        setBootOverride: done,
        readBootOverride: () => Promise.resolve("None" as const),
        close: done,
        acCycle: () => Promise.resolve(void (sent += 1)),
      });
      const topology = new Topology(
        levels.map((level, index) => ({ level, driver: device(`pdu-${index}`) })),
        () => ({ verified: true, message: "it is the host" }),
      );
      assert.deepEqual([(await topology.acCycle(forever(), () => undefined)).outcome, sent], [outcome, cycles]);
    });
  }
});
