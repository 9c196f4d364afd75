import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Enrolment, FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { EnrollProcedure } from "../../src/cli/enroll/procedure.ts";
import type { KubeRuntime } from "../../src/kube/runtime.ts";
import { openDevices } from "../../src/remediator/hosts/fencing-target/devices.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { kubeletClient } from "./kubelet-client.ts";
import { giveOutlets, OUTLETS, QUICK, storeEnrolment } from "./outlets.ts";
import { NAMESPACE, World } from "./world.ts";

// `ironfence enroll` on the rack. What it finds depends on the outlets into which hosts are really plugged.

const [FIRST, SECOND] = OUTLETS;
const THIRD = "snmp://pdu-1/3";
const KEY = { namespace: NAMESPACE, name: "n1" };

interface Outcome {
  enrolment: Enrolment | undefined;
  error: string;
  notes: string[];
}

function edit(world: World, spec: Record<string, unknown>): void {
  world.server.collection<FencingTarget>(FENCING_TARGETS).mergePatch(KEY, { spec });
}

/** Runs the enrolment of n1. @param onNote is called with each line that it prints. */
async function enroll(
  world: World,
  {
    onNote = () => undefined,
    timeoutMs = 600_000,
    confirmed = [],
  }: { onNote?: (note: string) => void; timeoutMs?: number; confirmed?: readonly string[] } = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Outcome> {
  const { clock } = world;
  const runtime = { client: kubeletClient(world.server, clock), clock, logger: createLogger("silent") };
  const target = world.target("n1") ?? assert.fail("no target");
  const deps = { runtime: runtime as unknown as KubeRuntime, openDevice: world.devices.openDevice };
  const opened = await openDevices(deps, target, signal);
  const isOutlet = (address: string): boolean => address.startsWith("snmp:");
  const outlets = opened.filter(({ address }) => isOutlet(address)).map(({ driver }) => driver);
  const bmcs = opened.filter(({ address }) => !isOutlet(address)).map(({ driver }) => driver);
  const outcome: Outcome = { enrolment: undefined, error: "", notes: [] };
  const report = {
    note: (text: string): void => {
      outcome.notes.push(text);
      onNote(text);
    },
    wait: () => undefined,
  };
  const subject = { target, outlets, bmcs, enrolledBy: "jane", timeoutMs, confirmed };
  let isOver = false;
  const over = new EnrollProcedure(deps.runtime, subject, report)
    .run(signal)
    .then((enrolment) => (outcome.enrolment = enrolment))
    .catch((error: Error) => (outcome.error = error.message))
    .finally(() => (isOver = true));
  await world.until("the enrolment is over", () => isOver, 2_400_000);
  await over;
  await Promise.all(opened.map(({ driver }) => driver.close()));
  return outcome;
}

/** Runs `test` on a world in which n1 has outlets, and is in maintenance. */
async function inMaintenance(
  { hosts = ["n1", "n2", "n3"].map((name) => ({ name })), addresses = OUTLETS as readonly string[] },
  test: (world: World) => Promise<void>,
): Promise<void> {
  await World.run({ hosts }, async (world) => {
    giveOutlets(world, "n1", { addresses });
    edit(world, { maintenance: true });
    await world.clock.advance(5_000);
    await test(world);
  });
}

const ALL_THREE = [FIRST, SECOND, THIRD];

/** Runs `test` on a world in which the target of n1 has three outlets with meters. */
function withThree(test: (world: World) => Promise<void>): Promise<void> {
  return inMaintenance({ addresses: ALL_THREE }, async (world) => {
    for (const address of ALL_THREE) world.devices.pdus.outlet(address).metered = true;
    await test(world);
  });
}

/** Asserts that nothing is enrolled and that all outlets of n1 are on. */
function assertRefused(world: World, { enrolment, error }: Outcome, why: RegExp): void {
  assert.equal(enrolment, undefined);
  assert.match(error, why);
  assert.equal(world.target("n1")?.status?.enrolment, undefined);
  for (const address of OUTLETS) assert.equal(world.devices.pdus.outlet(address).isOn, true, `${address} is on`);
}

describe("ironfence enroll", () => {
  it("outlets that feed one host, and no other, are enrolled, and the host is then fenced by them", () =>
    inMaintenance({}, async (world) => {
      const bootID = world.rack.host("n1").bootID;
      const { enrolment, error } = await enroll(world);
      assert.equal(error, "");
      assert.equal(enrolment?.bootIDBefore, bootID);
      assert.equal(enrolment.bootIDAfter, world.rack.host("n1").bootID);
      assert.deepEqual([enrolment.nodeName, enrolment.enrolledBy, enrolment.outlets.length], ["n1", "jane", 2]);
      edit(world, { maintenance: false });
      await world.clock.advance(5_000);
      const enrolled = world.target("n1")?.status?.conditions?.find(({ type }) => type === "OutletsEnrolled");
      assert.equal(enrolled?.status, "True", enrolled?.message);
      world.rack.bmc("n1").setReachability("silent");
      await world.hang("n1");
      world.remediate("n1", QUICK);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("outlets of another host are not enrolled, since the node keeps running without them", () =>
    inMaintenance({}, async (world) => {
      for (const address of OUTLETS) {
        world.devices.pdus.outlet(address).feeds = ["n2"];
        world.devices.pdus.outlet(address).onSwitch = () => world.rack.bmc("n1").setReachability("silent");
      }
      // A failed enrolment also removes an earlier one.
      storeEnrolment(world, "n1");
      assertRefused(world, await enroll(world), /still renewed its lease \d+ s after all outlets were off/);
    }));

  it("outlets are not enrolled if one of them feeds another host", () =>
    inMaintenance({}, async (world) => {
      world.devices.pdus.outlet(SECOND).feeds = ["n2"];
      const outcome = await enroll(world);
      assertRefused(world, outcome, /in vain for the node to keep running without snmp:\/\/pdu-1\/1/);
    }));

  it("outlets are not enrolled of a host with another supply that no outlet feeds", () =>
    inMaintenance({}, async (world) => {
      for (const address of OUTLETS) world.devices.pdus.outlet(address).feeds = [];
      assertRefused(world, await enroll(world), /redfish:\/\/n1 reads On although all outlets are off/);
    }));

  it("outlets are not enrolled if a third one feeds another host", () =>
    inMaintenance({ addresses: ALL_THREE }, async (world) => {
      world.devices.pdus.outlet(THIRD).feeds = ["n2"];
      const outcome = await enroll(world, { confirmed: ALL_THREE });
      assertRefused(world, outcome, /node n2 stopped renewing its lease while snmp:\/\/pdu-1\/3 was off/);
    }));

  it("three outlets whose loads move to each other are enrolled", () =>
    withThree(async (world) => {
      const { enrolment, error } = await enroll(world);
      assert.equal(error, "");
      assert.equal(enrolment?.outlets.length, 3);
    }));

  it("outlets are not enrolled if a third one feeds another host that has a second supply", () =>
    withThree(async (world) => {
      world.devices.pdus.outlet(THIRD).feeds = ["n2"];
      world.devices.pdus.plug("snmp://pdu-2/1", ["n2"]);
      const outcome = await enroll(world);
      assertRefused(world, outcome, /snmp:\/\/pdu-1\/1 is not shown to feed this host.*--confirm-outlets/);
      // Nor if the user confirms the others.
      const again = await enroll(world, { confirmed: OUTLETS });
      assertRefused(world, again, /snmp:\/\/pdu-1\/3 is not shown to feed this host.*its load of 180/);
    }));

  it("outlets of two hosts are not enrolled for one of them, although the loads of each move", () =>
    inMaintenance({ addresses: [...ALL_THREE, "snmp://pdu-1/4"] }, async (world) => {
      for (const address of [...ALL_THREE, "snmp://pdu-1/4"]) world.devices.pdus.outlet(address).metered = true;
      for (const address of [THIRD, "snmp://pdu-1/4"]) world.devices.pdus.outlet(address).feeds = ["n2"];
      assertRefused(world, await enroll(world), /snmp:\/\/pdu-1\/1 is not shown to feed this host/);
    }));

  it("a third outlet that feeds nothing is enrolled only if it is named", () =>
    withThree(async (world) => {
      world.devices.pdus.outlet(THIRD).feeds = [];
      assertRefused(
        world,
        await enroll(world, { confirmed: OUTLETS }),
        /snmp:\/\/pdu-1\/3 is not shown.*its load of 0/,
      );
      const { enrolment, error } = await enroll(world, { confirmed: ALL_THREE });
      assert.equal(error, "");
      assert.equal(enrolment?.outlets.length, 3);
    }));

  it("three outlets without meters are enrolled only if they are named", () =>
    inMaintenance({ addresses: ALL_THREE }, async (world) => {
      assertRefused(world, await enroll(world), /snmp:\/\/pdu-1\/1 is not shown.*no meter/);
      assert.equal((await enroll(world, { confirmed: ALL_THREE })).error, "");
    }));

  it("an enrolment that fails names the other outlet whose load no meter shows", () =>
    inMaintenance({ addresses: ALL_THREE }, async (world) => {
      for (const address of OUTLETS) world.devices.pdus.outlet(address).metered = true;
      const { error } = await enroll(world, { confirmed: [THIRD] });
      assert.match(error, /pdu-1\/1 is not shown.*there is no meter that shows what snmp:\/\/pdu-1\/3 took over/);
    }));

  it("a load that rises on the other outlets, and stays there, has not moved from an outlet", () =>
    withThree(async (world) => {
      const { pdus } = world.devices;
      const foreign = pdus.outlet(FIRST);
      foreign.feeds = ["n2"];
      pdus.plug("snmp://pdu-2/1", ["n2"]);
      for (const address of [SECOND, THIRD]) pdus.outlet(address).load = 100;
      foreign.onSwitch = (isOn) => {
        for (const address of [SECOND, THIRD]) if (!isOn) pdus.outlet(address).load = 150;
      };
      assertRefused(world, await enroll(world), /snmp:\/\/pdu-1\/1 is not shown to feed this host/);
    }));

  it("an outlet that feeds two hosts is not enrolled", () =>
    inMaintenance({ addresses: [FIRST] }, async (world) => {
      world.devices.pdus.plug(SECOND, []);
      world.devices.pdus.outlet(FIRST).feeds = ["n1", "n2"];
      assertRefused(world, await enroll(world), /node n2 stopped renewing its lease while every outlet was off/);
    }));

  it("outlets are not enrolled if another node begins a new boot while the host comes back", () =>
    inMaintenance({}, async (world) => {
      const onNote = (note: string): void => {
        if (note.includes("silent for 60 s")) world.rack.host("n2").order("ForceRestart");
      };
      assertRefused(world, await enroll(world, { onNote }), /node n2 is not Ready, or in a new boot/);
    }));

  it("outlets are not enrolled if their PDU reports another identity at the end than at the beginning", () =>
    inMaintenance({}, async (world) => {
      const onNote = (note: string): void => {
        if (note.includes("silent for 60 s")) world.devices.pdus.outlet(SECOND).pdu = "SN-PDU-2";
      };
      assertRefused(
        world,
        await enroll(world, { onNote }),
        /pdu-1\/2 was outlet 2 of PDU SN-PDU-1, and is outlet 2 of SN-PDU-2 now/,
      );
    }));

  it("outlets are not enrolled if a BMC is silent when the command begins", () =>
    inMaintenance({}, async (world) => {
      world.rack.bmc("n1").setReachability("silent");
      assertRefused(world, await enroll(world), /a BMC has to answer before outlets are switched: redfish:\/\/n1/);
      assert.deepEqual(world.devices.pdus.orders, []);
    }));

  it("outlets are not enrolled if the BMC of another host answers", () =>
    inMaintenance({}, async (world) => {
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      assertRefused(world, await enroll(world), /another host answers/);
      assert.deepEqual(world.devices.pdus.orders, []);
    }));

  it("outlets are not enrolled if no BMC shows that the host lost its power, although the node is in a new boot", () =>
    inMaintenance({}, async (world) => {
      world.faults.undated.add("n1");
      assertRefused(world, await enroll(world), /no BMC of the target shows that the host lost its power/);
    }));

  it("outlets are enrolled if a BMC with a supply of its own reads Off while they are off", () =>
    inMaintenance({}, async (world) => {
      world.faults.undated.add("n1");
      world.rack.bmc("n1").hasOwnSupply = true;
      const { enrolment, error } = await enroll(world);
      assert.equal(error, "");
      assert.equal(enrolment?.bootIDAfter, world.rack.host("n1").bootID);
    }));

  for (const [what, resetAfterMs] of [
    ["the switch of the node", undefined],
    ["the switch of a node that resets itself when it is cut off", 20_000],
    ["the switch of a node that resets itself after the outlets are on again", 75_000],
  ] as const) {
    it(`outlets that feed ${what} are not enrolled, although the node stops reporting and the BMC stops answering`, () =>
      inMaintenance({ addresses: [FIRST] }, async (world) => {
        const host = world.rack.host("n1");
        world.devices.pdus.plug(SECOND, []);
        const outlet = world.devices.pdus.outlet(FIRST);
        outlet.feeds = [];
        outlet.onSwitch = (isOn) => {
          world.rack.bmc("n1").setReachability(isOn ? "up" : "silent");
          // The network switch needs some time to start.
          if (isOn) world.clock.schedule(20_000, () => world.network.cut.delete("n1"));
          else world.network.cut.add("n1");
          if (!isOn && resetAfterMs !== undefined) {
            world.clock.schedule(resetAfterMs, () => host.order("ForceRestart"));
          }
        };
        const outcome = await enroll(world);
        const why =
          resetAfterMs === undefined
            ? /back in the same boot, so its host never lost its power/
            : resetAfterMs < 60_000
              ? /something else has reset it/
              : /no BMC of the target shows that the host lost its power/;
        assertRefused(world, outcome, why);
      }));
  }

  it("an outlet with a relay that is welded is not enrolled", () =>
    inMaintenance({}, async (world) => {
      world.devices.pdus.outlet(SECOND).isWelded = true;
      assertRefused(world, await enroll(world), /pdu-1\/2 did not read Off within 90 s/);
    }));

  it("an edit of the target while its outlets are switched ends the enrolment", () =>
    inMaintenance({}, async (world) => {
      const onNote = (note: string): void => {
        if (note.includes("without snmp://pdu-1/1")) edit(world, { maintenance: false });
      };
      assertRefused(world, await enroll(world, { onNote }), /the target was edited during the procedure/);
    }));

  it("Ctrl-C while all outlets are off switches them on again", () =>
    inMaintenance({}, async (world) => {
      const stopped = new AbortController();
      world.clock.schedule(180_000, () => stopped.abort(new Error("interrupted")));
      const outcome = await enroll(world, {}, stopped.signal);
      assert.ok(outcome.notes.includes("all outlets are on again"), outcome.notes.join("\n"));
      assertRefused(world, outcome, /interrupted/);
    }));

  it("a host that does not come back is not enrolled, and its outlets are on", () =>
    inMaintenance({ hosts: [{ name: "n1", restorePolicy: "AlwaysOff" }, { name: "n2" }] as never }, async (world) => {
      assertRefused(world, await enroll(world), /did not come back Ready in a new boot within 10m/);
    }));
});
