import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostIdentity } from "../../src/bmc/identity/host-identity.ts";
import type { PowerDriver, PowerReading } from "../../src/bmc/interface/driver.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import { Topology } from "../../src/bmc/topology/topology.ts";
import { forever, hasCode, openFake, RESET, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

const REFUSED = { status: 400, body: { error: { code: "Base.1.8.ActionNotSupported", message: "no" } } };

/** Puts these reset types next to the action, or in its ActionInfo. */
function list(bmc: FakeBmc, types: readonly string[] | undefined, where: "action" | "info" = "action"): void {
  const info = "/redfish/v1/Systems/1/ResetActionInfo";
  bmc.system["Actions"] = {
    "#ComputerSystem.Reset": {
      target: RESET,
      ...(where === "action" && types !== undefined && { "ResetType@Redfish.AllowableValues": types }),
      ...(where === "info" && { "@Redfish.ActionInfo": info }),
    },
  };
  const body: Json = { "@odata.id": info, Parameters: [{ Name: "ResetType", AllowableValues: types }] };
  bmc.override = ({ method, path }) => (method === "GET" && path === info ? { status: 200, body } : undefined);
}

/** The reset types that were ordered. */
function ordered(bmc: FakeBmc): unknown[] {
  return bmc.requests
    .filter(({ method, path }) => method === "POST" && path === RESET)
    .map(({ body }) => body["ResetType"]);
}

async function sendNmi(device: PowerDriver): Promise<void> {
  await device.identify(forever());
  assert.ok(device.sendNmi !== undefined);
  await device.sendNmi(forever());
}

describe("an NMI over Redfish", () => {
  for (const where of ["action", "info"] as const) {
    it(`an NMI over Redfish uses the reset type Nmi of ComputerSystem.Reset if the ${where} lists it`, async () => {
      await using bmc = await startFakeBmc();
      list(bmc, ["On", "ForceOff", "Nmi"], where);
      const device = openFake(bmc);
      await sendNmi(device);
      assert.deepEqual(ordered(bmc), ["Nmi"]);
      await device.close();
    });
  }

  it("an NMI over Redfish is not sent if the service does not list it, or lists nothing", async () => {
    for (const types of [["On", "ForceOff"], undefined]) {
      await using bmc = await startFakeBmc();
      list(bmc, types);
      const device = openFake(bmc);
      await assert.rejects(sendNmi(device), hasCode("Unsupported"));
      assert.deepEqual(ordered(bmc), []);
      await device.close();
    }
  });

  it("an NMI over Redfish that is refused is sent once", async () => {
    await using bmc = await startFakeBmc();
    list(bmc, ["On", "ForceOff", "Nmi"]);
    bmc.override = ({ method, path }) => (method === "POST" && path === RESET ? REFUSED : undefined);
    const device = openFake(bmc);
    await assert.rejects(sendNmi(device), (error: unknown) => error instanceof BmcError);
    assert.deepEqual(ordered(bmc), ["Nmi"]);
    await device.close();
  });

  it("an NMI over Redfish whose answer is lost is sent once", async () => {
    await using bmc = await startFakeBmc();
    list(bmc, ["On", "ForceOff", "Nmi"]);
    bmc.override = ({ method, path }) => (method === "POST" && path === RESET ? "reset" : undefined);
    const device = openFake(bmc);
    await assert.rejects(sendNmi(device), hasCode("Unreachable"));
    assert.deepEqual(ordered(bmc), ["Nmi"]);
    await device.close();
  });

  it("an NMI over Redfish is not sent to another host that answers after a new login", async () => {
    await using bmc = await startFakeBmc();
    list(bmc, ["On", "ForceOff", "Nmi"]);
    const device = openFake(bmc);
    await device.identify(forever());
    bmc.sessions.clear();
    bmc.system["UUID"] = "00000000-0000-4000-8000-00000000abcd";
    bmc.system["SerialNumber"] = "SN-OTHER";
    await assert.rejects(device.sendNmi?.(forever()) ?? Promise.resolve(), hasCode("Refused"));
    assert.deepEqual(ordered(bmc), []);
    assert.ok(bmc.log().includes(`GET ${SYSTEM}`));
    await device.close();
  });
});

describe("an NMI over IPMI", () => {
  it("an NMI over IPMI is a pulse of the diagnostic interrupt", async () => {
    await using world = await startIpmiWorld({ host: { dumpMs: 60_000 } });
    const device = world.open();
    await sendNmi(device);
    assert.deepEqual(
      world.host.orders.map(({ type, outcome }) => `${type} ${outcome}`),
      ["Nmi Started"],
    );
    await device.close();
  });

  for (const [type, arrived] of [
    ["loseAnswer", 1],
    ["loseRequest", 0],
  ] as const) {
    it(`an NMI over IPMI is sent once even if the network fails with ${type}`, async () => {
      await using world = await startIpmiWorld({ host: { dumpMs: 60_000 } });
      const device = world.open({ callTimeoutMs: 1_500 });
      await device.identify(forever());
      world.mock.addFault({ steps: ["ChassisControl"], times: 1, action: { type } });
      await assert.rejects(device.sendNmi?.(forever()) ?? Promise.resolve(), hasCode("Timeout"));
      assert.equal(world.mock.steps().filter((step) => step === "ChassisControl").length, arrived);
      await device.close();
    });
  }

  it("an NMI over IPMI that the BMC does not support is Unsupported", async () => {
    await using world = await startIpmiWorld();
    world.mock.addFault({ steps: ["ChassisControl"], action: { type: "completionCode", completionCode: 0xc1 } });
    await assert.rejects(sendNmi(world.open()), hasCode("Unsupported"));
    assert.deepEqual(world.host.orders, []);
  });
});

/** A device with these readings and this answer to an NMI, which counts NMIs. */
function fakeDevice(
  options: { power?: PowerReading["state"]; nmi?: "taken" | "none" | BmcErrorCode; serial?: string } = {},
): PowerDriver & { nmis: number } {
  const { power = "On", nmi = "taken", serial = "SN-1" } = options;
  const address = `redfish://${serial}`;
  const done = (): Promise<void> => Promise.resolve();
  const device: PowerDriver & { nmis: number } = {
    nmis: 0,
    address,
    identify: (): Promise<HostIdentity> => Promise.resolve({ serialNumber: serial, device: address }),
    readPower: () => Promise.resolve({ state: power, raw: power }),
    forceOff: done,
    on: done,
    setBootOverride: done,
    readBootOverride: () => Promise.resolve("None" as const),
    close: done,
    ...(nmi !== "none" && {
      sendNmi: (): Promise<void> => {
        device.nmis += 1;
        return nmi === "taken" ? done() : Promise.reject(new BmcError(nmi, `${address}: ${nmi}`));
      },
    }),
  };
  return device;
}

function topologyOf(...devices: PowerDriver[]): Topology {
  return new Topology(
    devices.map((driver, index) => ({ level: index + 1, driver })),
    ([answer]) =>
      answer?.serialNumber === "SN-OTHER"
        ? { verified: false, reason: "Mismatch", message: "another host" }
        : { verified: true, message: "it is the host" },
  );
}

describe("an NMI to a host with several devices", () => {
  it("an NMI to a host with several devices is sent by the first one that can", async () => {
    const devices = [fakeDevice({ nmi: "none" }), fakeDevice({ nmi: "Unsupported" }), fakeDevice(), fakeDevice()];
    const answer = await topologyOf(...devices).sendNmi(forever(), () => undefined);
    assert.equal(answer.outcome, "Sent");
    assert.deepEqual(
      devices.map(({ nmis }) => nmis),
      [0, 1, 1, 0],
    );
  });

  for (const code of ["Timeout", "BadResponse", "Unreachable", "Busy"] as const) {
    it(`an NMI to a host with several devices is not sent by a second device after the first one has failed with ${code}`, async () => {
      const devices = [fakeDevice({ nmi: code }), fakeDevice()];
      const answer = await topologyOf(...devices).sendNmi(forever(), () => undefined);
      assert.equal(answer.outcome, "Uncertain");
      assert.equal(devices[1]?.nmis, 0);
    });
  }

  it("an NMI to a host with several devices is not sent unless the host reads On", async () => {
    for (const power of ["Off", "Changing", "Unknown"] as const) {
      const device = fakeDevice({ power });
      const answer = await topologyOf(device).sendNmi(forever(), () => undefined);
      assert.equal(answer.outcome, "NotSent");
      assert.equal(device.nmis, 0);
    }
  });

  it("an NMI to a host with several devices is not sent to another host that answers once its power was read", async () => {
    let readings = 0;
    const device: PowerDriver & { nmis: number } = {
      ...fakeDevice(),
      identify: () => Promise.resolve({ device: "d", serialNumber: readings < 2 ? "SN-1" : "SN-OTHER" }),
      readPower: () => {
        readings += 1;
        return Promise.resolve({ state: "On", raw: "On" });
      },
      sendNmi: () => {
        device.nmis += 1;
        return Promise.resolve();
      },
    };
    const topology = topologyOf(device);
    await topology.readPower(forever());
    const answer = await topology.sendNmi(forever(), () => undefined);
    assert.equal(answer.outcome, "NotSent");
    assert.equal(device.nmis, 0);
  });

  it("an NMI to a host with several devices is not sent to another host", async () => {
    const device = fakeDevice({ serial: "SN-OTHER" });
    const answer = await topologyOf(device).sendNmi(forever(), () => undefined);
    assert.equal(answer.outcome, "NotSent");
    assert.equal(device.nmis, 0);
  });
});
