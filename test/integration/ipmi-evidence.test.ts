import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BmcEvidence } from "../../src/bmc/evidence/model.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { forever, PASSWORD } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

async function evidenceOf(device: PowerDriver): Promise<BmcEvidence> {
  await device.identify(forever());
  assert.ok(device.readEvidence !== undefined);
  return device.readEvidence(forever());
}

describe("the SEL over IPMI", () => {
  it("the SEL over IPMI is read from its end, with the clock of the BMC", async () => {
    await using world = await startIpmiWorld();
    world.bmc.clockAheadMs = 7_200_000;
    for (let at = 0; at < 40; at += 1) world.bmc.logEvent("correctableECC");
    world.bmc.logEvent("uncorrectableECC", 41_000);
    const { entries, clockAheadMs = 0, incomplete } = await evidenceOf(world.open());
    assert.equal(entries[0]?.text, "Uncorrectable ECC, memory sensor 87h");
    assert.deepEqual([entries[0]?.topic, entries[0]?.rank], ["Memory", 3]);
    assert.ok(Math.abs(clockAheadMs - 7_200_000) < 30_000);
    assert.ok(entries.length <= 12);
    assert.equal(incomplete, undefined);
  });

  it("the SEL over IPMI is read in parts if the BMC cannot give a whole entry", async () => {
    await using world = await startIpmiWorld();
    world.bmc.logEvent("thermalTrip");
    world.mock.addFault({ steps: ["GetSELEntry"], times: 1, action: { type: "completionCode", completionCode: 0xca } });
    const { entries } = await evidenceOf(world.open());
    assert.deepEqual([entries[0]?.topic, entries[0]?.rank], ["Thermal", 3]);
  });

  for (const isInParts of [false, true]) {
    it(`the SEL over IPMI is shown without the password that an entry contains${isInParts ? ", if it is read in parts" : ""}`, async () => {
      await using world = await startIpmiWorld();
      world.bmc.logEvent("thermalTrip");
      const record = [1, 0, 0xe0, ...Buffer.from(`-${PASSWORD}-`)];
      const answers = isInParts ? [record.slice(8), record.slice(0, 8)] : [record];
      // The fault that was added last applies first.
      for (const bytes of answers) {
        const action = { type: "data" as const, data: [0xff, 0xff, ...bytes] };
        world.mock.addFault({ steps: ["GetSELEntry"], times: 1, action });
      }
      if (isInParts) {
        const tooLong = { type: "completionCode", completionCode: 0xca } as const;
        world.mock.addFault({ steps: ["GetSELEntry"], times: 1, action: tooLong });
      }
      const { entries } = await evidenceOf(world.open());
      assert.equal(entries.length, 1);
      assert.doesNotMatch(JSON.stringify(entries), /s3cre|-pass/);
    });
  }

  it("the SEL over IPMI that is empty, or that the BMC does not give, yields no entries", async () => {
    await using world = await startIpmiWorld();
    assert.deepEqual((await evidenceOf(world.open())).entries, []);
    world.bmc.logEvent("uncorrectableECC");
    world.mock.addFault({ steps: ["GetSELInfo"], action: { type: "completionCode", completionCode: 0xd4 } });
    const { entries, incomplete } = await evidenceOf(world.open());
    assert.deepEqual(entries, []);
    assert.match(incomplete ?? "", /does not let this account read its SEL/);
  });

  it("the SEL over IPMI that is never answered does not delay an order or a reading, nor cast doubt on an Off", async () => {
    await using world = await startIpmiWorld();
    world.bmc.logEvent("uncorrectableECC");
    const device = world.open();
    await device.identify(forever());
    world.mock.addFault({ steps: ["GetSELEntry"], action: { type: "loseRequest" } });
    const reading = device.readEvidence?.(forever());
    for (let turn = 0; turn < 20_000 && !world.mock.steps().includes("GetSELEntry"); turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    await device.forceOff(forever());
    let power = await device.readPower(forever());
    while (power.state !== "Off") power = await device.readPower(forever());
    assert.equal((await reading)?.entries.length, 0);
    assert.equal(
      (await device.readPower(forever())).state,
      "Off",
      "a lost answer about the log does not mean a restart",
    );
    await device.close();
    assert.equal(world.mock.sessionCount, 0);
  });

  for (const step of ["OpenSession", "RAKP1", "RAKP3", "SetSessionPrivilegeLevel"] as const)
    it(`the SEL over IPMI leaves no session if the device is closed while its login waits for ${step}`, async () => {
      await using world = await startIpmiWorld();
      const device = world.open();
      await device.identify(forever());
      world.mock.addFault({ steps: [step], action: { type: "delay", delayMs: 50 } });
      const lifetime = new AbortController();
      const reading = device.readEvidence?.(lifetime.signal).catch(() => undefined);
      const asked = (): number => world.mock.steps().filter((each) => each === step).length;
      for (let turn = 0; turn < 100_000 && asked() < 2; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      assert.equal(asked(), 2, "the login for the log has begun");
      lifetime.abort();
      await device.close();
      await reading;
      // The driver ends a session without waiting for the answer. The BMC itself ends an idle session after a minute.
      const endMs = performance.now() + 5_000;
      while (world.mock.sessionCount > 0 && performance.now() < endMs)
        await new Promise((resolve) => setImmediate(resolve));
      assert.equal(world.mock.sessionCount, 0);
    });
});

describe("the sensors over IPMI", () => {
  const sensor = (number: number, states: number, type = 0x01, eventType = 0x01) => ({
    name: `S${number}`,
    number,
    type,
    eventType,
    states,
  });

  it("the sensors over IPMI of a healthy host show no alarm", async () => {
    await using world = await startIpmiWorld();
    const { sensors, incomplete } = await evidenceOf(world.open());
    assert.deepEqual([sensors, incomplete], [[], undefined]);
    assert.ok(world.mock.steps().includes("GetSensorReading"));
  });

  it("the sensors over IPMI are alarms if they are above a critical threshold, or have the state of a failure", async () => {
    await using world = await startIpmiWorld();
    world.bmc.sensors = [
      { ...sensor(1, 0x18), name: "Inlet Temp" },
      sensor(2, 0x08),
      sensor(3, 0x07),
      sensor(4, 0x30, 0x04),
      { ...sensor(5, 0x10), isUnavailable: true },
      { ...sensor(6, 0x0009, 0x08, 0x6f), name: "PSU2 Status" },
      { ...sensor(7, 0x0083, 0x07, 0x6f), name: "\u001b[31mCPU1" },
      sensor(8, 0x0001, 0x09, 0x6f),
    ];
    const { sensors } = await evidenceOf(world.open());
    assert.deepEqual(sensors, [
      { topic: "Thermal", text: "Inlet Temp is at or above its upper critical threshold" },
      { topic: "PSU", text: "Power supply input lost (AC/DC), PSU2 Status" },
      { topic: "CPU", text: "IERR, CPU1" },
    ]);
  });

  it("the sensors over IPMI do not show the password, if the BMC has it in a name", async () => {
    await using world = await startIpmiWorld();
    world.bmc.sensors = [{ ...sensor(1, 0x18), name: `T ${PASSWORD}` }];
    const { sensors } = await evidenceOf(world.open());
    assert.deepEqual(sensors, [{ topic: "Thermal", text: "T is at or above its upper critical threshold" }]);
  });

  it("the sensors over IPMI are bounded in number, and so is what is asked for them", async () => {
    await using world = await startIpmiWorld();
    world.bmc.sensors = Array.from({ length: 250 }, (_, number) => sensor(number, 0));
    const { sensors, incomplete } = await evidenceOf(world.open());
    assert.deepEqual(sensors, []);
    assert.match(incomplete ?? "", /not all was read in (?:192 requests|5 s)/);
    world.bmc.sensors = Array.from({ length: 20 }, (_, number) => sensor(number, 0x10));
    assert.equal((await evidenceOf(world.open())).sensors.length, 5);
  });

  it("the sensors over IPMI are read again under a new reservation, and left out if the BMC has no records", async () => {
    await using world = await startIpmiWorld();
    world.bmc.sensors = [sensor(1, 0x10)];
    world.mock.addFault({ steps: ["GetSDR"], times: 1, action: { type: "completionCode", completionCode: 0xc5 } });
    assert.equal((await evidenceOf(world.open())).sensors.length, 1);
    world.mock.addFault({ steps: ["GetSDR"], action: { type: "completionCode", completionCode: 0xc5 } });
    assert.equal((await evidenceOf(world.open())).sensors.length, 0);
    world.mock.addFault({ steps: ["ReserveSDR"], action: { type: "completionCode", completionCode: 0xc1 } });
    const { sensors, incomplete } = await evidenceOf(world.open());
    assert.deepEqual([sensors, incomplete], [[], undefined]);
  });

  it("the sensors over IPMI come after the log, which is kept if they are never answered", async () => {
    await using world = await startIpmiWorld();
    world.bmc.logEvent("uncorrectableECC");
    world.mock.addFault({ steps: ["GetSDR"], action: { type: "loseRequest" } });
    const { entries, incomplete } = await evidenceOf(world.open());
    assert.equal(entries[0]?.topic, "Memory");
    assert.match(incomplete ?? "", /record of a sensor/);
  });
});
