import assert from "node:assert/strict";
import { test } from "node:test";
import { Topology } from "../../src/bmc/topology/topology.ts";
import { MIBS } from "../../src/bmc/interface/mibs.ts";
import { SNMP_AUTH_PROTOCOLS } from "../../src/bmc/interface/device-config.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { COMMUNITY, indexOf, PASSWORD, SERIAL, startSnmpWorld } from "./snmp-fixture.ts";
import type { OutletDriver, WorldOptions } from "./snmp-fixture.ts";

const { signal } = new AbortController();

const failsWith =
  (code: BmcErrorCode, text = /(?:)/) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof BmcError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, text);
    assert.doesNotMatch(error.message, new RegExp(`${PASSWORD}|${COMMUNITY}`));
    return true;
  };

const stateOf = async (outlet: OutletDriver): Promise<string> => (await outlet.readPower(signal)).state;

for (const mib of MIBS) {
  for (const isMetered of [true, false]) {
    const which = isMetered ? "with a meter" : "without a meter";
    test(`an outlet ${which} is identified, switched off and on by the table ${mib}`, async () => {
      await using world = await startSnmpWorld({ mib, isMetered });
      const outlet = world.open(1);
      const identity = await outlet.identify(signal);
      assert.equal(identity.systemUUID, undefined);
      assert.equal(identity.serialNumber, undefined);
      const index = indexOf(mib, 1);
      const expected = { pdu: SERIAL, outlet: index, label: "one 1", ...(isMetered && { metered: true }) };
      assert.deepEqual(await outlet.identifyOutlet(signal), expected);
      assert.equal(await outlet.findOffObstacle?.(signal), undefined);
      assert.equal(await stateOf(outlet), "On");
      await outlet.forceOff(signal);
      assert.equal(world.rack.host("one").mains, false);
      const reading = await outlet.readPower(signal);
      assert.equal(reading.state, "Off");
      assert.match(reading.raw, isMetered ? /meter shows 0/ : /^(?:off|outletStatusOff)$/);
      assert.ok((reading.bmcUpMs ?? 0) > 30_000);
      await outlet.forceOff(signal);
      await outlet.on(signal);
      assert.equal(await stateOf(outlet), "On");
      assert.equal(world.rack.host("one").mains, true);
    });
  }
}

test("a host with two supplies keeps its power until both outlets are off", async () => {
  await using world = await startSnmpWorld();
  const outlets = [world.open(2), world.open(3)];
  await outlets[0]?.forceOff(signal);
  assert.equal(world.rack.host("two").mains, true);
  await outlets[1]?.forceOff(signal);
  assert.equal(world.rack.host("two").mains, false);
  for (const outlet of outlets) assert.equal(await stateOf(outlet), "Off");
});

test("an outlet that is welded on is never read Off while its meter shows power", async () => {
  await using world = await startSnmpWorld();
  world.outlet(1).faults.isWelded = true;
  const outlet = world.open(1);
  await outlet.forceOff(signal);
  const { state, raw } = await outlet.readPower(signal);
  assert.equal(state, "Changing");
  assert.match(raw, /off, but its meter shows 180 W/);
});

test("an outlet whose relay is that of another outlet is not read Off", async () => {
  await using world = await startSnmpWorld();
  world.outlet(1).faults.switches = indexOf("APC-rPDU2", 4);
  const outlet = world.open(1);
  await outlet.forceOff(signal);
  assert.equal(await stateOf(outlet), "Changing");
  assert.equal(world.rack.host("one").mains, true);
});

test("an outlet whose meter was read once is not read Off when the meter has gone", async () => {
  for (const again of [false, true]) {
    await using world = await startSnmpWorld();
    const first = world.open(1);
    assert.equal(await stateOf(first), "On");
    world.outlet(1).faults.hasLostMeter = true;
    const outlet = again ? world.open(1) : first;
    await outlet.forceOff(signal);
    const { state, raw } = await outlet.readPower(signal);
    assert.equal(state, "Unknown");
    assert.match(raw, /its meter shows nothing now/);
    assert.equal((await outlet.identifyOutlet(signal)).metered, true);
  }
});

test("an outlet is Changing while an order waits, and Off only after it", async () => {
  for (const mib of MIBS) {
    await using world = await startSnmpWorld({ mib });
    const outlet = world.open(1);
    world.outlet(1).faults.delayMs = 60_000;
    await outlet.forceOff(signal);
    // PDU2-MIB has no pending state, so the outlet still reads on.
    assert.equal(await stateOf(outlet), mib === "Raritan" ? "On" : "Changing", mib);
  }
});

test("a frozen state never makes a running host Off, since it stays On", async () => {
  await using world = await startSnmpWorld();
  world.outlet(1).faults.isFrozen = true;
  const outlet = world.open(1);
  await outlet.forceOff(signal);
  assert.equal(await stateOf(outlet), "On");
  await outlet.on(signal);
});

test("a frozen Off does not count while the meter shows power", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1);
  await outlet.forceOff(signal);
  world.outlet(1).faults.isFrozen = true;
  await outlet.on(signal);
  assert.equal(world.rack.host("one").mains, true);
  assert.equal(await stateOf(outlet), "Changing");
});

test("an Off of a PDU that has just started does not count", async () => {
  await using world = await startSnmpWorld({ isMetered: false });
  const outlet = world.open(1);
  await outlet.forceOff(signal);
  assert.equal(await stateOf(outlet), "Off");
  world.mock.reboot(0);
  const { state, raw } = await outlet.readPower(signal);
  assert.equal(state, "Unknown");
  assert.match(raw, /the PDU started \d s ago/);
  world.skip(31_000);
  assert.equal(await stateOf(outlet), "Off");
});

test("a PDU that restarts between two calls, and counts its boots, is read by the same driver", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1);
  assert.equal(await stateOf(outlet), "On");
  world.mock.reboot(0);
  assert.equal(await stateOf(outlet), "On");
  world.skip(10_000_000);
  assert.equal(await stateOf(outlet), "On");
});

test("a PDU that restarts right before an order gets it once, or not at all", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1, { callTimeoutMs: 1_000 });
  assert.equal(await stateOf(outlet), "On");
  world.mock.addFault({ steps: ["set"], times: 1, action: { type: "reboot", downMs: 0 } });
  await assert.rejects(outlet.forceOff(signal), failsWith("Timeout"));
  assert.equal(world.mock.requests.filter(({ step }) => step === "set").length, 1);
  assert.equal(await stateOf(outlet), "On");
});

test("an order whose answer is lost is sent once, and the failure says that nothing is known", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1, { callTimeoutMs: 2_500 });
  world.mock.addFault({ steps: ["set"], action: { type: "loseAnswer" } });
  await assert.rejects(outlet.forceOff(signal), failsWith("Timeout"));
  assert.equal(world.mock.requests.filter(({ step }) => step === "set").length, 1);
  assert.equal(await stateOf(outlet), "Off");
});

test("an order is not sent once this process may not send orders", async () => {
  await using world = await startSnmpWorld();
  let isAllowed = true;
  const outlet = world.open(1, { isOrderAllowed: () => isAllowed });
  await outlet.forceOff(signal);
  isAllowed = false;
  await assert.rejects(outlet.on(signal), failsWith("Aborted", /may no longer send orders/));
  await assert.rejects(outlet.forceOff(signal), failsWith("Aborted"));
  assert.equal(world.mock.requests.filter(({ step }) => step === "set").length, 1);
});

test("a read is sent again while there is no answer", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1);
  world.mock.addFault({ steps: ["get"], times: 1, action: { type: "loseRequest" } });
  assert.equal(await stateOf(outlet), "On");
  world.mock.addFault({ steps: ["discovery"], times: 1, action: { type: "loseRequest" } });
  assert.equal(await stateOf(world.open(2)), "On");
});

test("a PDU that answers no encrypted request is reported with a hint to compare privProtocol and its password", async () => {
  await using world = await startSnmpWorld();
  const [never, later] = [world.open(1, { callTimeoutMs: 20_000 }), world.open(2, { callTimeoutMs: 20_000 })];
  await later.readPower(signal);
  world.mock.addFault({ steps: ["get"], action: { type: "loseRequest" } });
  await Promise.all([
    assert.rejects(never.readPower(signal), failsWith("Timeout", /privProtocol/)),
    assert.rejects(later.readPower(signal), failsWith("Timeout", /no answer$/)),
  ]);
});

test("another PDU at the same address is neither believed nor switched", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1);
  await outlet.identifyOutlet(signal);
  world.mock.serial = "PDU-0815";
  assert.deepEqual(await outlet.readPower(signal), {
    state: "Unknown",
    raw: "the outlet that answers is not the one that was identified: another outlet or another PDU answers",
  });
  await assert.rejects(outlet.forceOff(signal), failsWith("Refused", /not sent: the outlet that answers is not/));
  assert.equal(world.rack.host("one").mains, true);
  assert.equal((await outlet.identifyOutlet(signal)).pdu, "PDU-0815");
});

test("a PDU without a serial number is known by its engine ID", async () => {
  await using world = await startSnmpWorld();
  world.mock.serial = undefined;
  assert.match((await world.open(1).identifyOutlet(signal)).pdu, /^8000013e04[0-9a-f]+$/);
});

for (const authProtocol of SNMP_AUTH_PROTOCOLS) {
  test(`an outlet is switched with authPriv by ${authProtocol}, and with authNoPriv`, async () => {
    await using world = await startSnmpWorld({ user: { authProtocol, allowsNoPriv: true } });
    for (const securityLevel of ["authPriv", "authNoPriv"] as const) {
      const outlet = world.open(1, { snmp: { authProtocol, securityLevel } });
      await outlet.forceOff(signal);
      assert.equal(await stateOf(outlet), "Off");
      await outlet.on(signal);
    }
  });
}

test("an outlet is switched with the community of SNMPv2c", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1, { username: "", password: COMMUNITY, snmp: { version: "v2c" } });
  await outlet.forceOff(signal);
  assert.equal(await stateOf(outlet), "Off");
  assert.ok(world.mock.requests.every(({ version }) => version === 1));
});

const wrong: readonly [
  what: string,
  options: Parameters<Awaited<ReturnType<typeof startSnmpWorld>>["open"]>[1],
  code: BmcErrorCode,
  text: RegExp,
][] = [
  ["user", { username: "nobody" }, "AuthFailed", /does not know the user/],
  ["password", { password: "another-password" }, "AuthFailed", /password or the authProtocol/],
  ["authProtocol", { snmp: { authProtocol: "SHA" } }, "AuthFailed", /password or the authProtocol/],
  ["securityLevel", { snmp: { securityLevel: "authNoPriv" } }, "Unsupported", /securityLevel/],
];
for (const [what, options, code, text] of wrong) {
  test(`a wrong ${what} for a PDU is refused at once, and the message names it`, async () => {
    await using world = await startSnmpWorld();
    await assert.rejects(world.open(1, options).readPower(signal), failsWith(code, text));
    assert.deepEqual(world.mock.requests, []);
  });
}

for (const as of ["plain", "signed", "otherEngine"] as const) {
  test(`a forged answer (${as}) that comes before the answer of the PDU is not believed`, async () => {
    await using world = await startSnmpWorld();
    const outlet = world.open(1);
    assert.equal(await stateOf(outlet), "On");
    world.mock.addFault({ steps: ["get"], action: { type: "forge", as } });
    assert.notEqual((await outlet.readPower(signal).catch(() => ({ state: "failed" }))).state, "Off");
    assert.notEqual(
      (
        await world
          .open(1)
          .readPower(signal)
          .catch(() => ({ state: "failed" }))
      ).state,
      "Off",
    );
  });
}

const wrongAnswers: readonly [what: string, action: object, code: BmcErrorCode][] = [
  ["garbage", { type: "garbage" }, "BadResponse"],
  ["half an answer", { type: "truncate" }, "BadResponse"],
  ["the values of other objects", { type: "otherObjects" }, "BadResponse"],
  ["too few values", { type: "fewerValues" }, "BadResponse"],
  ["texts for numbers", { type: "wrongTypes" }, "BadResponse"],
  ["no such instance", { type: "noSuchInstance" }, "SystemNotFound"],
  ["authorizationError", { type: "errorStatus", status: 16 }, "PrivilegeTooLow"],
  ["genErr", { type: "errorStatus", status: 5 }, "Refused"],
  ["the right values after the deadline", { type: "delay", delayMs: 3_000 }, "Timeout"],
];
for (const [what, action, code] of wrongAnswers) {
  test(`a PDU that answers with ${what} shows no power state`, async () => {
    await using world = await startSnmpWorld();
    const outlet = world.open(1, { callTimeoutMs: 1_000, snmp: { mib: "APC-rPDU2" } });
    await outlet.forceOff(signal);
    world.mock.addFault({ steps: ["get"], action });
    await assert.rejects(outlet.readPower(signal), (error: unknown) => {
      // The deadline may come before the last retry.
      return failsWith(error instanceof BmcError && error.code === "Timeout" ? "Timeout" : code)(error);
    });
    world.mock.clearFaults();
    assert.equal(await stateOf(outlet), "Off");
  });
}

test("a state that the MIB does not know is Unknown", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1);
  await outlet.identify(signal);
  world.mock.addFault({ steps: ["get"], times: 1, action: { type: "unknownValues" } });
  assert.equal(await stateOf(outlet), "Unknown");
});

const orders: readonly [status: number, code: BmcErrorCode][] = [
  [6, "PrivilegeTooLow"],
  [13, "Busy"],
  [17, "PrivilegeTooLow"],
  [5, "Refused"],
];
for (const [status, code] of orders) {
  test(`an order that a PDU refuses with error-status ${status} fails as ${code}`, async () => {
    await using world = await startSnmpWorld();
    const outlet = world.open(1);
    world.mock.addFault({ steps: ["set"], action: { type: "errorStatus", status } });
    await assert.rejects(outlet.forceOff(signal), failsWith(code));
    assert.equal(world.rack.host("one").mains, true);
  });
}

test("an outlet that does not exist, or whose index has another form, is not found", async () => {
  await using world = await startSnmpWorld({ mib: "Raritan" });
  await assert.rejects(
    world.open(9).readPower(signal),
    failsWith("SystemNotFound", /no outlet 1\.9 \(outletSwitchingState/),
  );
  const address = `${world.mock.address}/1`;
  await assert.rejects(world.open(1, { address }).forceOff(signal), failsWith("SystemNotFound", /PDU\.OUTLET/));
});

test("the error for a PDU of another vendor names what to set", async () => {
  const options: WorldOptions = {};
  await using world = await startSnmpWorld(options);
  world.mock.addFault({ steps: ["get"], times: 1, action: { type: "noSuchInstance" } });
  await assert.rejects(world.open(1).identify(signal), failsWith("Unsupported", /set snmp\.mib to one of APC-rPDU2/));
});

test("a port without a PDU is unreachable at once, and a silent PDU times out", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1, { callTimeoutMs: 700 });
  world.mock.reboot(60_000);
  await assert.rejects(outlet.readPower(signal), failsWith("Timeout"));
  await assert.rejects(world.open(1, { address: "snmp://127.0.0.1:9/1" }).readPower(signal), failsWith("Unreachable"));
});

test("a login that no PDU accepts is refused before anything is sent", async () => {
  await using world = await startSnmpWorld();
  assert.throws(() => world.open(1, { password: "short" }), failsWith("AuthFailed", /8 characters/));
  assert.throws(() => world.open(1, { username: "" }), failsWith("AuthFailed"));
  assert.throws(() => world.open(1, { password: "", snmp: { version: "v2c" } }), failsWith("AuthFailed", /community/));
});

test("a closed driver sends nothing, and an aborted call ends", async () => {
  await using world = await startSnmpWorld();
  const outlet = world.open(1);
  const controller = new AbortController();
  world.mock.addFault({ steps: ["get"], times: 1, action: { type: "loseRequest" } });
  const reading = outlet.readPower(controller.signal);
  controller.abort();
  await assert.rejects(reading, failsWith("Aborted"));
  await outlet.close();
  const { length } = world.mock.requests;
  await assert.rejects(outlet.forceOff(signal), failsWith("Aborted"));
  assert.equal(world.mock.requests.length, length);
});

test("twelve drivers of one PDU all get their answer", async () => {
  await using world = await startSnmpWorld();
  const drivers = Array.from({ length: 12 }, (_, at) => world.open((at % 4) + 1));
  const states = await Promise.all(drivers.map(stateOf));
  assert.deepEqual(new Set(states), new Set(["On"]));
});

test("a host of outlets alone has no boot override to clear, so that no undo waits for one", async () => {
  await using world = await startSnmpWorld();
  const topology = new Topology([{ level: 1, driver: world.open(1) }], () => ({ verified: true, message: "" }));
  await topology.setBootOverride("None", signal);
  assert.equal(await topology.readBootOverride(signal), "None");
});
