import assert from "node:assert/strict";
import { test } from "node:test";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import type { OutletAnswer } from "../../src/bmc/topology/outlets.ts";
import { Topology } from "../../src/bmc/topology/topology.ts";
import type { IdentityCheck } from "../../src/bmc/identity/identity-check.ts";
import type { OutletIdentity } from "../../src/bmc/interface/driver.ts";
import type { Mib } from "../../src/bmc/interface/mibs.ts";
import { enrolledSpecDigest, judgeOutlets } from "../../src/remediator/hosts/model/enrolment.ts";
import { SERIAL, startSnmpWorld } from "./snmp-fixture.ts";
import type { OutletDriver, SnmpWorld } from "./snmp-fixture.ts";

// Chained PDUs answer at one address. When one of them is removed, the outlets after it get other indexes.

const { signal } = new AbortController();

/**
 * Starts a chain: index 1 is on the first unit, 2 is on `PDU-B` and feeds `one`, 3 and 4 are on `PDU-C` and feed `two`.
 */
async function startChain(mib: Mib = "APC-rPDU2") {
  const units = [
    { unit: 2, serial: "PDU-B" },
    { unit: 3, serial: "PDU-C" },
  ];
  const world = await startSnmpWorld({ mib, isMetered: false, mock: { units } });
  const [one, left, right, spare] = [1, 2, 3, 4].map((number) => world.outlet(number).spec);
  if (one === undefined || left === undefined || right === undefined || spare === undefined) throw new Error("outlets");
  Object.assign(spare, { index: "1", unit: 1, number: 1 });
  Object.assign(one, { index: "2", unit: 2, number: 1 });
  Object.assign(left, { index: "3", unit: 3, number: 1 });
  Object.assign(right, { index: "4", unit: 3, number: 2 });
  const removeUnit2 = (): void => {
    world.mock.units = units.slice(1);
    Object.assign(one, { index: "none" });
    Object.assign(left, { index: "2" });
    Object.assign(right, { index: "3" });
  };
  return { world, units, one, left, right, removeUnit2 };
}

/** The host `one` with a target whose outlet is enrolled with its present identity. */
async function enrolledHost(world: SnmpWorld, outlet: OutletDriver): Promise<Topology> {
  const enrolled = await outlet.identifyOutlet(signal);
  const judge = (answers: readonly OutletAnswer[]): IdentityCheck =>
    judgeOutlets(targetWith(outlet.address, enrolled), undefined, answers);
  return new Topology([{ level: 1, driver: outlet }], () => ({ verified: true, message: "" }), {
    clock: world.clock,
    judge,
  });
}

function targetWith(address: string, { pdu, outlet, label }: OutletIdentity): FencingTarget {
  const devices = [{ address, level: 1, credentialsSecretRef: { name: "pdu" } }];
  const target = {
    metadata: { name: "one" },
    spec: { nodeName: "one", identity: {}, devices },
  } as unknown as FencingTarget;
  const enrolment = {
    time: "2026-01-01T00:00:00Z",
    nodeName: "one",
    specDigest: enrolledSpecDigest(target),
    outlets: [{ address, pdu, outlet, label }],
  };
  return { ...target, status: { enrolment } } as unknown as FencingTarget;
}

test("an outlet of a chain is identified by its own unit, and by its number there", async () => {
  const { world } = await startChain();
  await using _ = world;
  const { pdu, outlet } = await world.open(2).identifyOutlet(signal);
  assert.deepEqual([pdu, outlet], ["PDU-B", "1"]);
  assert.deepEqual(await world.open(4).identifyOutlet(signal), { pdu: "PDU-C", outlet: "2", label: "two 3" });
});

test("a unit that is removed from a chain before a fence leaves the outlets of the other units alone", async () => {
  const { world, removeUnit2, left } = await startChain();
  await using _ = world;
  const topology = await enrolledHost(world, world.open(2));
  await topology.verify(() => ({ verified: true, message: "" }), signal);
  removeUnit2();
  // The same label does not make it the same outlet.
  left.label = "one 1";
  await assert.rejects(
    topology.forceOff(signal),
    /outlet 1 "one 1" of PDU PDU-C now, and outlet 1 "one 1" of PDU PDU-B was enrolled: run ironfence enroll one/,
  );
  assert.equal(world.rack.host("two").mains, true);
  assert.ok(!world.mock.requests.some(({ step }) => step === "set"));
});

test("an outlet of a chain whose index is that of another outlet since an order proves no Off, and gets no On", async () => {
  const { world, removeUnit2, left } = await startChain();
  await using _ = world;
  const outlet = world.open(2);
  const topology = await enrolledHost(world, outlet);
  await topology.forceOff(signal);
  assert.equal((await topology.readPower(signal)).state, "Off");
  removeUnit2();
  left.label = "one 1";
  await world.open(2).forceOff(signal);
  assert.notEqual((await topology.readPower(signal)).state, "Off");
  assert.match((await outlet.readPower(signal)).raw, /the outlet that answers is not the one/);
  const sets = (): number => world.mock.requests.filter(({ step }) => step === "set").length;
  const before = sets();
  await assert.rejects(outlet.on(signal), /not sent: the outlet that answers is not the one/);
  topology.forgetIdentities();
  assert.notEqual((await topology.readPower(signal)).state, "Off");
  await assert.rejects(topology.on(signal), /of PDU PDU-C now/);
  assert.equal(sets(), before);
});

test("an outlet whose number on its unit is another one since it was enrolled is not switched", async () => {
  const { world, one, left } = await startChain();
  await using _ = world;
  const outlet = world.open(3);
  const topology = await enrolledHost(world, outlet);
  // The first unit is replaced by one with one outlet less, so the second outlet of PDU-C gets the index of the first.
  Object.assign(one, { index: "1" });
  Object.assign(left, { index: "2" });
  const right = world.outlet(4).spec;
  Object.assign(right, { index: "3", label: "two 2" });
  await assert.rejects(outlet.forceOff(signal), /not sent: the outlet that answers is not the one/);
  assert.equal((await outlet.readPower(signal)).state, "Unknown");
  await assert.rejects(topology.forceOff(signal), /outlet 2 "two 2" of PDU PDU-C now, and outlet 1 "two 2"/);
});

test("an enrolment by the serial number of the first unit ends, and names the command that renews it", async () => {
  const { world } = await startChain();
  await using _ = world;
  const outlet = world.open(2);
  const target = targetWith(outlet.address, { pdu: SERIAL, outlet: "2", label: "one 1" });
  const check = judgeOutlets(target, undefined, [
    { ...(await outlet.identifyOutlet(signal)), address: outlet.address },
  ]);
  assert.equal(check.verified, false);
  assert.match(
    check.message,
    /of PDU PDU-B now, and outlet 2 "one 1" of PDU PDU-4711 was enrolled: run ironfence enroll/,
  );
});

test("chained units whose outlets have no unit are refused, and a unit that is alone is used", async () => {
  for (const mib of ["Vertiv", "APC-rPDU"] as const) {
    const { world } = await startChain(mib);
    await using _ = world;
    const outlet = world.open(1);
    for (const name of ["identifyOutlet", "readPower", "forceOff", "on"] as const) {
      await assert.rejects(outlet[name](signal), /3 chained units answer/);
    }
    world.mock.units = [];
    assert.equal((await outlet.identifyOutlet(signal)).pdu, SERIAL);
  }
});

test("the row of a meter that is that of another outlet proves no Off", async () => {
  await using world = await startSnmpWorld();
  world.outlet(1).faults.meterOf = 4;
  world.outlet(1).faults.isWelded = true;
  const outlet = world.open(1);
  assert.equal((await outlet.identifyOutlet(signal)).metered, undefined);
  world.outlet(1).faults.meterOf = 1;
  const { metered } = await world.open(1).identifyOutlet(signal);
  assert.equal(metered, true);
  world.outlet(1).faults.meterOf = 4;
  await outlet.forceOff(signal);
  assert.equal((await outlet.readPower(signal)).state, "Unknown");
});
