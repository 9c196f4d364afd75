import assert from "node:assert/strict";
import { test } from "node:test";
import { supplyPower } from "../../../../src/bmc/topology/outlets.ts";
import type { IdentityCheck } from "../../../../src/bmc/identity/identity-check.ts";
import { HeldError } from "../../../../src/bmc/topology/order-errors.ts";
import { Topology } from "../../../../src/bmc/topology/topology.ts";
import type { WholeReading } from "../../../../src/bmc/topology/whole-power.ts";
import type { PowerDriver, PowerState } from "../../../../src/bmc/interface/driver.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { decidingLevel } from "../../../../src/remediator/probes/report/target-status.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const signal = new AbortController().signal;
const VERIFIED: IdentityCheck = { verified: true, message: "enrolled" };
const UNKNOWN: IdentityCheck = { verified: false, reason: "Unknown", message: "not enrolled" };

class FakeOutlet {
  state: PowerState = "On";
  readonly orders: string[] = [];
  readonly driver: PowerDriver;

  constructor(address: string) {
    const driver: Partial<PowerDriver> = {
      address,
      identify: () => Promise.resolve({ device: address }),
      identifyOutlet: () => Promise.resolve({ pdu: "SN", outlet: "1" }),
      readPower: () => Promise.resolve({ state: this.state, raw: this.state }),
      forceOff: async () => void this.orders.push("Off"),
      on: async () => void this.orders.push("On"),
    };
    this.driver = driver as PowerDriver;
  }
}

const bmc = (driver: Partial<PowerDriver>): PowerDriver => ({ address: "bmc", ...driver }) as PowerDriver;
const deadBmc = (): PowerDriver => {
  const fail = (): Promise<never> => Promise.reject(new BmcError("Unreachable", "bmc: no answer"));
  return bmc({ identify: fail, readPower: fail, forceOff: fail, on: fail });
};

/** A host with a BMC on level 1 and two outlets on level 2. */
function hostOf(first: PowerDriver, judge: () => IdentityCheck = () => VERIFIED, clock = new VirtualClock()) {
  const outlets = [new FakeOutlet("snmp://pdu/1"), new FakeOutlet("snmp://pdu/2")];
  const devices = [{ level: 1, driver: first }, ...outlets.map(({ driver }) => ({ level: 2, driver }))];
  const topology = new Topology(devices, () => VERIFIED, { clock, judge });
  return { topology, outlets, orders: () => outlets.flatMap(({ orders }) => orders) };
}

test("outlets show that their host is off only if each of them answers and is off", () => {
  const reading = (state: PowerState) => ({ state, raw: state, address: "snmp://pdu/1" });
  for (const [states, outlets, expected] of [
    [["Off", "Off"], 2, "Off"],
    [["Off"], 2, "Unknown"],
    [["Off", "On"], 2, "Unknown"],
    [["On", "On"], 2, "Unknown"],
    [["Off", "Changing"], 2, "Unknown"],
    [["Off", "Unknown"], 2, "Unknown"],
    [[], 0, "Unknown"],
  ] as const) {
    assert.equal(supplyPower(states.map(reading), outlets).state, expected, `${states.join(", ")} of ${outlets}`);
  }
});

test("outlets that are on show nothing about a host whose BMC is dead, and what they show is part of the error", async () => {
  const { topology, outlets } = hostOf(deadBmc());
  await assert.rejects(topology.readPower(signal), /bmc: no answer; outlets that are on show nothing/);
  const { runs, supplied, ...whole } = await topology.readWhole(signal);
  assert.deepEqual([whole.state, runs, supplied], ["Unknown", false, true]);
  for (const outlet of outlets) outlet.state = "Off";
  const reading = await topology.readPower(signal);
  assert.deepEqual([reading.state, reading.bySupply], ["Off", true]);
});

test("a host is unsupplied while one of its outlets is not on and no BMC answers", async () => {
  for (const [first, second, isDead, expected] of [
    ["Off", "Off", true, true],
    ["Off", "On", true, true],
    ["On", "On", true, undefined],
    ["Off", "Off", false, undefined],
  ] as const) {
    const { topology, outlets } = hostOf(isDead ? deadBmc() : offBmc("Off"));
    for (const [index, outlet] of outlets.entries()) outlet.state = index === 0 ? first : second;
    assert.equal((await topology.readWhole(signal)).unsupplied, expected, `${first} ${second} ${isDead}`);
  }
});

test("a BMC that is identified and then gives no power state delays the next read of the whole power by 8 s at most", async () => {
  let reads = 0;
  const readPower = async (): Promise<never> => {
    reads += 1;
    if (reads > 1) await new Promise(() => undefined);
    throw new BmcError("Timeout", "bmc: no answer");
  };
  const clock = new VirtualClock();
  const first = bmc({ identify: () => Promise.resolve({ device: "bmc" }), readPower });
  const { topology } = hostOf(first, () => VERIFIED, clock);
  assert.equal((await topology.readWhole(signal)).supplied, true);
  let second: WholeReading | undefined;
  void topology.readWhole(signal).then((reading) => (second = reading));
  await clock.advance(7_999);
  assert.deepEqual([reads, second], [2, undefined]);
  await clock.advance(1);
  assert.equal(second?.supplied, true);
});

test("an order for outlets only reaches no BMC", async () => {
  const sent: string[] = [];
  const on = { identify: () => Promise.resolve({ device: "bmc" }), on: async () => void sent.push("On") };
  const { topology, orders } = hostOf(bmc(on));
  await topology.on(signal, { outletsOnly: true });
  assert.deepEqual([sent, orders()], [[], ["On", "On"]]);
});

test("what begins to hold power-ons while outlets are switched on keeps the order from the BMC", async () => {
  const sent: string[] = [];
  const on = { identify: () => Promise.resolve({ device: "bmc" }), on: async () => void sent.push("On") };
  const { topology, orders } = hostOf(bmc(on));
  const obstacle = (): string | undefined => (orders().length > 0 ? "Held" : undefined);
  await assert.rejects(topology.on(signal, { obstacle }), HeldError);
  assert.deepEqual([sent, orders()], [[], ["On", "On"]]);
});

test("a BMC that answers decides about the power of its host, whatever its outlets show", async () => {
  for (const state of ["On", "Off", "Changing"] as const) {
    const answers = { identify: () => Promise.resolve({ device: "bmc" }) };
    const { topology, outlets } = hostOf(bmc({ ...answers, readPower: () => Promise.resolve({ state, raw: state }) }));
    for (const outlet of outlets) outlet.state = state === "Off" ? "On" : "Off";
    assert.equal((await topology.readPower(signal)).state, state);
  }
});

test("outlets are compared with their enrolment right before each order to switch them off", async () => {
  let check: IdentityCheck = VERIFIED;
  const { topology, orders } = hostOf(deadBmc(), () => check);
  assert.deepEqual(await topology.verify(() => VERIFIED, signal), VERIFIED);
  check = UNKNOWN;
  await assert.rejects(topology.forceOff(signal), /no order is sent: not enrolled/);
  assert.deepEqual(orders(), []);
});

const offBmc = (state: PowerState): PowerDriver =>
  bmc({
    identify: () => Promise.resolve({ device: "bmc" }),
    readPower: () => Promise.resolve({ state, raw: state }),
  });

test("an AC cycle by outlets switches off all outlets of a host that reads Off, and says so once they are", async () => {
  const { topology, outlets, orders } = hostOf(offBmc("Off"));
  const clock = new VirtualClock();
  const [first, second] = outlets;
  assert.ok(first && second);
  const devices = [{ level: 1, driver: offBmc("Off") }, ...outlets.map(({ driver }) => ({ level: 2, driver }))];
  const slow = new Topology(devices, () => VERIFIED, { clock, judge: () => VERIFIED });
  const answer = slow.acCycle(signal, () => undefined);
  await clock.advance(3_000);
  assert.deepEqual(orders(), ["Off", "Off"]);
  let isAnswered = false;
  void answer.then(() => (isAnswered = true));
  first.state = "Off";
  await clock.advance(3_000);
  assert.equal(isAnswered, false, "one outlet is on");
  second.state = "Off";
  await clock.advance(3_000);
  const { outcome, bySupply } = await answer;
  assert.deepEqual([outcome, bySupply], ["Sent", true]);
  assert.equal((await topology.acCycle(signal, () => undefined)).bySupply, true);
});

test("an AC cycle by outlets leaves a host alone that does not read Off, or whose outlets are not enrolled", async () => {
  for (const [first, judge, why] of [
    [offBmc("On"), () => VERIFIED, /the host is not Off/],
    [offBmc("Changing"), () => VERIFIED, /the host is not Off/],
    [deadBmc(), () => VERIFIED, /bmc: no answer/],
    [offBmc("Off"), () => UNKNOWN, /no order is sent: not enrolled/],
  ] as const) {
    const { topology, orders } = hostOf(first, judge);
    const { outcome, message, bySupply } = await topology.acCycle(signal, () => undefined);
    assert.deepEqual([outcome, bySupply, orders()], ["NotSent", undefined, []]);
    assert.match(message, why);
  }
  const { topology, outlets, orders } = hostOf(deadBmc());
  for (const outlet of outlets) outlet.state = "Off";
  assert.match((await topology.acCycle(signal, () => undefined)).message, /its outlets are off already/);
  assert.deepEqual(orders(), []);
});

test("outlets that are not the host's are not switched on for it, and the other levels are", async () => {
  const sent: string[] = [];
  const answering = bmc({
    identify: () => Promise.resolve({ device: "bmc" }),
    on: async () => void sent.push("On"),
  });
  const { topology, orders } = hostOf(answering, () => UNKNOWN);
  await topology.on(signal);
  assert.deepEqual([sent, orders()], [["On"], []]);
});

test("outlets are switched on before the BMC that may need them is called", async () => {
  const { topology, orders } = hostOf(deadBmc());
  await assert.rejects(topology.on(signal), /bmc: no answer/);
  assert.deepEqual(orders(), ["On", "On"]);
});

test("outlets are never used for a host without a FencingTarget", async () => {
  const outlet = new FakeOutlet("snmp://pdu/1");
  const topology = new Topology([{ level: 1, driver: outlet.driver }], () => VERIFIED);
  outlet.state = "Off";
  assert.equal((await topology.readPower(signal)).state, "Unknown");
  await assert.rejects(topology.forceOff(signal), /only through a FencingTarget/);
  assert.deepEqual(outlet.orders, []);
});

test("outlets that were switched off by hand show no power in the status of a target, and prove no host off", () => {
  const off = { ok: true, identity: { device: "d" }, reading: { state: "Off", raw: "off" } } as const;
  const outlet = { ...off, address: "snmp://pdu/1", level: 2, index: 1, outlet: { pdu: "SN", outlet: "1" } };
  const dead = { ok: false, reason: "Unreachable", message: "", address: "redfish://n1", level: 1, index: 0 } as const;
  assert.equal(decidingLevel([dead, outlet]).state, "Unknown");
  assert.equal(decidingLevel([{ ...dead, ...off }, outlet]).state, "Off");
});
