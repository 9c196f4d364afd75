import assert from "node:assert/strict";
import { test } from "node:test";
import type { CipherSuiteId } from "../../src/bmc/interface/cipher-suites.ts";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { systemClock as clock } from "../../src/runtime/system.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

// The commands of the IPMI driver, over real datagrams.

const wait = { clock, pollMs: 250, timeoutMs: 20_000, freshReads: 2 };

for (const suite of [17, 3, 16, 2, 15, 1] as const satisfies readonly CipherSuiteId[]) {
  test(`a whole fence over IPMI with cipher suite ${suite} uses one session, and ends it`, async () => {
    const systemUUID = "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44";
    await using world = await startIpmiWorld({
      host: { systemUUID, serialNumber: "SN-1" },
      mock: { suites: [suite] },
    });
    const { host, mock } = world;
    const device = world.open({ ipmi: { cipherSuites: [suite] } });
    assert.deepEqual(await device.identify(forever()), {
      systemUUID,
      serialNumber: "SN-1",
      manufacturer: "ironfence",
      model: "simulated host",
      device: mock.address,
    });
    assert.equal((await device.readPower(forever())).state, "On");
    await device.forceOff(forever());
    assert.ok((await waitForPower(device, "Off", wait, forever())).proven);
    assert.equal(host.power, "Off");
    await device.forceOff(forever());
    await device.setBootOverride("NetworkOnce", forever());
    assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
    assert.deepEqual(host.bootSetting, { enabled: "Once", target: "Pxe", mode: "UEFI" });
    await device.setBootOverride("None", forever());
    assert.equal(await device.readBootOverride(forever()), "None");
    await device.on(forever());
    assert.ok((await waitForPower(device, "On", { ...wait, freshReads: 1 }, forever())).proven);
    assert.equal(mock.sessionCount, 1);
    await device.close();
    assert.equal(mock.sessionCount, 0);
    assert.equal(mock.steps().filter((step) => step === "OpenSession").length, 1);
    assert.deepEqual(
      host.orders.map(({ type }) => type),
      ["ForceOff", "ForceOff", "On"],
    );
  });
}

test("cipher suite 17 is tried first, and 3 if the BMC does not know it", async () => {
  await using world = await startIpmiWorld({ mock: { suites: [3] } });
  const device = world.open();
  await device.readPower(forever());
  const opens = world.mock.requests.filter(({ step }) => step === "OpenSession");
  // The authentication algorithm: HMAC-SHA256, then HMAC-SHA1.
  assert.deepEqual(
    opens.map(({ data }) => data[12]),
    [3, 1],
  );
});

test("a refusal of one byte, too short to say what it answers, leads on to the next suite", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["OpenSession"], times: 1, action: { type: "status", status: 0x01, short: true } });
  assert.equal((await world.open().readPower(forever())).state, "On");
});

test("a BMC that has used suite 17 is not downgraded to 3 by a refusal, which any machine on the network could have sent", async () => {
  await using world = await startIpmiWorld();
  assert.equal((await world.open().readPower(forever())).state, "On");
  const before = world.mock.requests.length;
  const refusal = { type: "status", status: 0x11, short: true } as const;
  const removeFault = world.mock.addFault({ steps: ["OpenSession"], action: refusal });
  await assert.rejects(world.open().readPower(forever()), hasCode("Unsupported", /suite 17.*worked.*cipherSuites/));
  const opens = world.mock.requests.slice(before).filter(({ step }) => step === "OpenSession");
  assert.deepEqual(
    opens.map(({ data }) => data[12]),
    [3],
    "HMAC-SHA256 alone",
  );
  removeFault();
  // A user can enable suite 3 explicitly.
  assert.equal((await world.open({ ipmi: { cipherSuites: [3] } }).readPower(forever())).state, "On");
});

test("a login without a common cipher suite is Unsupported, and suites that are not allowed are not tried", async () => {
  await using world = await startIpmiWorld({ mock: { suites: [3, 17] } });
  const device = world.open({ ipmi: { cipherSuites: [16] } });
  await assert.rejects(device.readPower(forever()), hasCode("Unsupported", /11h/));
  assert.equal(world.mock.steps().filter((step) => step === "OpenSession").length, 1);
});

test("a legacy host is given a legacy boot override", async () => {
  await using world = await startIpmiWorld();
  await world.open({ ipmi: { bootMode: "Legacy" } }).setBootOverride("NetworkOnce", forever());
  assert.deepEqual(world.host.bootSetting, { enabled: "Once", target: "Pxe", mode: "Legacy" });
});

test("a host that is powering off is not off", async () => {
  await using world = await startIpmiWorld({ host: { powerOffDelayMs: 60_000 } });
  const device = world.open();
  await device.forceOff(forever());
  assert.equal(world.host.power, "PoweringOff");
  assert.equal((await device.readPower(forever())).state, "On");
});

test("an order refused because the host is there already is not an error; one refused otherwise is", async () => {
  await using world = await startIpmiWorld({ host: { power: "Off" } });
  world.mock.addFault({ steps: ["ChassisControl"], action: { type: "completionCode", completionCode: 0xd5 } });
  const device = world.open();
  await device.forceOff(forever());
  await assert.rejects(device.on(forever()), hasCode("Refused", /D5h/));
});

const COMPLETION_CODES = [
  [0xc0, "Busy"],
  [0xc1, "Unsupported"],
  [0xc3, "Timeout"],
  [0xc4, "Busy"],
  [0xcc, "Unsupported"],
  [0xcf, "Timeout"],
  [0xd2, "Busy"],
  [0xd4, "PrivilegeTooLow"],
  [0xd5, "Refused"],
  [0xff, "Refused"],
] as const;

for (const [completionCode, code] of COMPLETION_CODES) {
  test(`the completion code ${completionCode.toString(16)} over IPMI fails an order and a reading as ${code}`, async () => {
    await using world = await startIpmiWorld();
    const { mock, host } = world;
    mock.addFault({
      steps: ["ChassisControl", "GetChassisStatus"],
      action: { type: "completionCode", completionCode },
    });
    const device = world.open();
    await assert.rejects(device.readPower(forever()), hasCode(code));
    mock.clearFaults();
    mock.addFault({ steps: ["ChassisControl"], action: { type: "completionCode", completionCode } });
    await assert.rejects(device.forceOff(forever()), hasCode(code));
    assert.deepEqual(host.orders, []);
    assert.equal(mock.steps().filter((step) => step === "ChassisControl").length, 1, "an order is not repeated");
  });
}

test("a reading that the BMC was too busy for is asked for again", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({
    times: 2,
    steps: ["GetChassisStatus"],
    action: { type: "completionCode", completionCode: 0xc0 },
  });
  assert.equal((await world.open().readPower(forever())).state, "On");
});

test("an empty or short status is not a reading", async () => {
  await using world = await startIpmiWorld();
  for (const data of [[], [0], [0, 0]]) {
    world.mock.clearFaults();
    world.mock.addFault({ steps: ["GetChassisStatus"], action: { type: "data", data } });
    await assert.rejects(world.open().readPower(forever()), hasCode("BadResponse"));
  }
});

test("an identity leaves out what the BMC does not have, and a damaged inventory gives none", async () => {
  await using world = await startIpmiWorld();
  const { mock } = world;
  const device = world.open();
  mock.addFault({ steps: ["GetSystemGUID"], action: { type: "completionCode", completionCode: 0xc1 } });
  assert.equal((await device.identify(forever())).systemUUID, undefined);
  assert.equal((await device.identify(forever())).serialNumber, "SN-ONE");
  mock.clearFaults();
  mock.addFault({ steps: ["ReadFRUData"], action: { type: "data", data: [8, 1, 2, 3, 4, 5, 6, 7, 8] } });
  const damaged = await device.identify(forever());
  assert.equal(damaged.serialNumber, undefined);
  assert.equal(damaged.systemUUID, world.host.spec.systemUUID);
});

test("IPMI names restored mains power as the cause of a start, until something else starts the host", async () => {
  await using world = await startIpmiWorld({ host: { powerOffDelayMs: 10, powerOnDelayMs: 10, bootMs: 10 } });
  const device = world.open();
  await device.identify(forever());
  const read = () => device.readPowerLossSigns?.(forever());
  assert.deepEqual(await read(), { isStartedByMains: false });
  world.host.cutMains();
  world.host.restoreMains();
  await sleep(clock, 100, forever());
  assert.deepEqual(await read(), { isStartedByMains: true });
  world.host.order("ForceRestart");
  assert.deepEqual(await read(), { isStartedByMains: false });
  world.mock.addFault({ steps: ["GetSystemRestartCause"], action: { type: "completionCode", completionCode: 0xc1 } });
  assert.deepEqual(await read(), {});
});
