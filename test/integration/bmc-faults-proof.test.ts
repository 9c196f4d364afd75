import assert from "node:assert/strict";
import { test } from "node:test";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import { Topology } from "../../src/bmc/topology/topology.ts";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import {
  NOTHING_READ,
  recordFailedReading,
  recordReading,
} from "../../src/remediator/machine/rules/proof/off-proof.ts";
import { sameUuid } from "../../src/remediator/hosts/model/identity.ts";
import { systemClock as clock } from "../../src/runtime/system.ts";
import { forever, hasCode, SYSTEM } from "./bmc-fixture.ts";
import type { CellWorld } from "./bmc-faults-cell.ts";
import { startDriverCell } from "./bmc-faults-driver.ts";
import type { DriverCell } from "./bmc-faults-driver.ts";
import { startIpmiCell } from "./bmc-faults-ipmi.ts";
import type { IpmiCell } from "./bmc-faults-ipmi.ts";
import { startRedfishCell } from "./bmc-faults-redfish.ts";
import type { RedfishCell } from "./bmc-faults-redfish.ts";

// A BMC with a fault can make a driver read Off although the host runs. A single such reading must not count as a
// proof, neither in the remediation nor in the command line. A reading of another host must never count.

const TIMEOUTS = { callTimeoutMs: 2_000, connectTimeoutMs: 2_000 };
/** Readings per story: enough for a false reading at the beginning, in the middle and at the end. */
const READINGS = 9;

interface Lies<World> {
  /** Makes only the next reading Off. All resources that it reads agree. */
  lieOnce(world: World): void;
  /** Makes the next reading fail. */
  failOnce(world: World): void;
}

const redfish: Lies<RedfishCell> = {
  lieOnce: ({ mock }) => {
    for (const path of [`${SYSTEM}$`, "Chassis/[^/]+$"]) {
      mock.addFault({ match: { path }, times: 1, action: { type: "override", properties: { PowerState: "Off" } } });
    }
  },
  failOnce: ({ mock }) => void mock.addFault({ times: 1, action: { type: "status", status: 500 } }),
};
const ipmi: Lies<IpmiCell> = {
  lieOnce: ({ mock }) =>
    void mock.addFault({ steps: ["GetChassisStatus"], times: 1, action: { type: "data", data: [0, 0, 0] } }),
  failOnce: ({ mock }) =>
    void mock.addFault({
      steps: ["GetChassisStatus"],
      times: 1,
      action: { type: "completionCode", completionCode: 0xd5 },
    }),
};

const driver: Lies<DriverCell> = {
  lieOnce: ({ server }) => {
    server.tamper = ({ method }, { status, body }) => {
      if (method !== "GET") return undefined;
      server.tamper = () => undefined;
      return { status, signed: true, body: body.replace('"On"', '"Off"') };
    };
  },
  failOnce: ({ server }) => {
    server.tamper = () => {
      server.tamper = () => undefined;
      return { status: 500, signed: true };
    };
  },
};

/** The device as a remediation uses it, with the identity check. */
function fenceable(world: CellWorld): Topology {
  const { systemUUID } = world.host.spec;
  return new Topology([{ level: 1, driver: world.open(TIMEOUTS) }], ([answer]) =>
    answer?.systemUUID !== undefined && sameUuid(answer.systemUUID, systemUUID)
      ? { verified: true, message: "it is the host" }
      : { verified: false, reason: "Mismatch", message: "another host answers" },
  );
}

/** Reads like a remediation, and asserts that there is never a proof. @returns how many readings were Off. */
async function assertNeverProven(device: Topology, before: (reading: number) => void): Promise<number> {
  let seen = NOTHING_READ;
  let offReadings = 0;
  for (let reading = 0; reading < READINGS; reading += 1) {
    before(reading);
    try {
      const power = await device.readPower(forever());
      if (power.state === "Off") offReadings += 1;
      seen = recordReading(seen, power, clock.monotonicMs());
    } catch (error) {
      assert.ok(error instanceof BmcError, String(error));
      seen = recordFailedReading(seen, clock.monotonicMs());
    }
    assert.equal(seen.provenAtMs, undefined, `reading ${reading} has proven a running host off`);
  }
  return offReadings;
}

function stories<World extends RedfishCell | IpmiCell | DriverCell>(
  name: string,
  start: () => Promise<World>,
  lies: Lies<World>,
): void {
  async function inWorld(work: (world: World, device: Topology) => Promise<void>): Promise<void> {
    const world = await start();
    const device = fenceable(world);
    try {
      await work(world, device);
      assert.equal(world.host.power, "On");
    } finally {
      await device.close();
      await world.close();
    }
  }

  test(`one false Off among true readings over ${name} is not a proof, wherever it comes`, () =>
    inWorld(async (world, device) => {
      const reported = await assertNeverProven(device, (reading) => {
        if (reading % 2 === 0) lies.lieOnce(world);
      });
      assert.ok(reported > 0, "the false reading has reached the prover");
    }));

  test(`one false Off between failures over ${name} is not a proof`, () =>
    inWorld(async (world, device) => {
      // The identity check also reads the power, and would use up the false reading.
      await device.readPower(forever());
      const reported = await assertNeverProven(device, (reading) => {
        if (reading === 4) lies.lieOnce(world);
        else lies.failOnce(world);
      });
      assert.equal(reported, 1, "the false reading has reached the prover");
    }));

  test(`a power state that flaps over ${name} is not a proof, and the wait for a proof ends in time`, () =>
    inWorld(async (world, device) => {
      world.bmc.flapPower(600_000);
      await assertNeverProven(device, () => undefined);
      const wait = { clock, pollMs: 250, timeoutMs: 900, freshReads: 2 };
      assert.equal((await waitForPower(device, "Off", wait, forever())).proven, false);
    }));

  test(`the Off of another host over ${name} does not count as a reading, and no order is sent to that host`, () =>
    inWorld(async (world, device) => {
      const other = world.rack.host("other");
      world.bmc.rewire(other);
      const reported = await assertNeverProven(device, () => undefined);
      assert.equal(reported, 0);
      await assert.rejects(device.forceOff(forever()), hasCode("SystemNotFound", /another host/));
      await assert.rejects(device.on(forever()), hasCode("SystemNotFound", /another host/));
      assert.deepEqual([other.orders, world.host.orders], [[], []]);
    }));

  test(`an Off over ${name} from before an order does not prove the order, even if the order takes effect late`, () =>
    inWorld(async (world, device) => {
      // The BMC always reports the state before the order, which has not arrived yet.
      world.bmc.orderDelayMs = 600_000;
      await device.forceOff(forever());
      assert.equal(await assertNeverProven(device, () => undefined), 0);
    }));
}

stories("Redfish", () => startRedfishCell("http"), redfish);
stories("IPMI", startIpmiCell, ipmi);
stories("a driver server", startDriverCell, driver);
