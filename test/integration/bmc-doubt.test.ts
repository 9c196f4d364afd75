import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createRack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock as clock, systemRandom as random } from "../../src/runtime/system.ts";
import { CHASSIS, forever, hasCode, ok, openFake, PASSWORD, RESET, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { FakeBmc, Json, Request } from "./bmc-fixture.ts";

// Readings of Off that the driver must not trust.

const MANAGER = "/redfish/v1/Managers/1";

/** Adds a Manager with the properties `manager` to the System. */
function addManager(bmc: FakeBmc, manager: Json): void {
  bmc.system["Links"] = { Chassis: [{ "@odata.id": CHASSIS }], ManagedBy: [{ "@odata.id": MANAGER }] };
  bmc.override = ({ path }) => (path === MANAGER ? ok(manager) : undefined);
}

/** The clock of the machine. `skip` moves it forward. */
function skippable(): { clock: Clock; skip: (ms: number) => void } {
  let skippedMs = 0;
  return {
    clock: { ...clock, monotonicMs: () => clock.monotonicMs() + skippedMs },
    skip: (ms) => {
      skippedMs += ms;
    },
  };
}

const looks = (bmc: FakeBmc): number => bmc.log().filter((line) => line === `GET ${MANAGER}`).length;

test("an Off of a BMC that has just started is not believed, by its own clock, until it has settled", async () => {
  await using bmc = await startFakeBmc();
  const manager: Json = { DateTime: "2026-03-01T00:00:20+00:00", LastResetTime: "2026-03-01T00:00:00Z" };
  addManager(bmc, manager);
  bmc.system["PowerState"] = "Off";
  await using device = openFake(bmc, { path: SYSTEM });
  const reading = await device.readPower(forever());
  assert.equal(reading.state, "Unknown");
  assert.match(reading.raw, /started 20 s ago/);
  manager["DateTime"] = "2026-03-01T00:00:29Z";
  assert.equal((await device.readPower(forever())).state, "Unknown");
  manager["DateTime"] = "2026-03-01T00:00:31Z";
  assert.equal((await device.readPower(forever())).state, "Off");
  assert.equal((await device.readPower(forever())).state, "Off");
  assert.equal(looks(bmc), 3, "once it has settled it is not asked again");
});

test("a BMC whose clock has stopped is believed after the agent has seen it settle, but not after a restart of the BMC", async () => {
  await using bmc = await startFakeBmc();
  addManager(bmc, { DateTime: "1970-01-01T00:00:20Z", LastResetTime: "1970-01-01T00:00:00Z" });
  bmc.system["PowerState"] = "Off";
  let aheadMs = 0;
  const ours: Clock = {
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs() + aheadMs,
    schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
  };
  await using device = openFake(bmc, { path: SYSTEM, clock: ours });
  const read = async (): Promise<string> => (await device.readPower(forever())).state;
  assert.equal(await read(), "Unknown");
  aheadMs = 25_000;
  assert.equal(await read(), "Unknown");
  aheadMs = 31_000;
  assert.equal(await read(), "Off");
  bmc.sessions.clear();
  assert.equal(await read(), "Unknown");
});

// A BMC without a battery starts with a clock in 1970 and records its start with that time. Seconds later NTP sets the
// clock.
const SET_SINCE: Json = { DateTime: "2026-03-01T00:00:25Z", LastResetTime: "1970-01-01T00:00:20Z" };

test("a BMC that dates its start before its clock was set counts as up only since it was seen, not since 1970", async () => {
  await using bmc = await startFakeBmc();
  addManager(bmc, SET_SINCE);
  bmc.system["PowerState"] = "Off";
  const skipping = skippable();
  await using device = openFake(bmc, { path: SYSTEM, clock: skipping.clock });
  const upSeconds = async (): Promise<number> =>
    Math.floor(((await device.readPower(forever())).bmcUpMs ?? NaN) / 1_000);
  assert.ok((await upSeconds()) < 600);
  skipping.skip(1_000_000);
  assert.ok((await upSeconds()) >= 1_000);
});

test("an Off of a BMC that dates its start before its clock was set is not believed after it was unreachable", async () => {
  await using bmc = await startFakeBmc();
  addManager(bmc, SET_SINCE);
  bmc.system["PowerState"] = "Off";
  const { override } = bmc;
  await using device = openFake(bmc, { path: SYSTEM });
  await device.identify(forever());
  bmc.override = () => "reset";
  await assert.rejects(device.readPower(forever()));
  bmc.override = override;
  const reading = await device.readPower(forever());
  assert.equal(reading.state, "Unknown");
  assert.match(reading.raw, /may have restarted/);
});

test("the Date header of a BMC without a clock is used instead", async () => {
  await using bmc = await startFakeBmc();
  addManager(bmc, { LastResetTime: new Date(Date.now() - 5_000).toISOString() });
  bmc.system["PowerState"] = "Off";
  await using device = openFake(bmc, { path: SYSTEM });
  assert.equal((await device.readPower(forever())).state, "Unknown");
});

test("a BMC that has shown the host On is not asked when it started, until something breaks", async () => {
  await using bmc = await startFakeBmc();
  const manager: Json = { DateTime: "2026-03-01T10:00:00Z", LastResetTime: "2026-03-01T00:00:00Z" };
  addManager(bmc, manager);
  await using device = openFake(bmc, { path: SYSTEM });
  await device.identify(forever());
  await device.forceOff(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
  assert.equal(looks(bmc), 0);
  // The BMC restarts: our session is gone, and it reports Off whatever the real state is.
  bmc.sessions.clear();
  manager["LastResetTime"] = "2026-03-01T09:59:55Z";
  assert.equal((await device.readPower(forever())).state, "Unknown");
  assert.equal(looks(bmc), 1);
});

test("the same holds for a request that fails, and for a connection that breaks and is opened again", async () => {
  for (const reply of ["reset", { status: 200, body: "<html>" }] as const) {
    await using bmc = await startFakeBmc();
    addManager(bmc, { DateTime: "2026-03-01T00:00:10Z", LastResetTime: "2026-03-01T00:00:00Z" });
    await using device = openFake(bmc, { path: SYSTEM });
    const read = () => device.readPower(forever());
    assert.equal((await read()).state, "On");
    const { override } = bmc;
    let failures = 1;
    bmc.override = (request) => (request.path === SYSTEM && failures-- > 0 ? reply : override(request));
    bmc.system["PowerState"] = "Off";
    assert.match((await read().catch(read)).raw, /started 10 s ago/);
  }
});

test("a BMC that does not report its start time is not believed for a while after it has lost our session", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  await device.forceOff(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
  bmc.sessions.clear();
  const reading = await device.readPower(forever());
  assert.equal(reading.state, "Unknown");
  assert.match(reading.raw, /may have restarted/);
});

test("an Off says whether the Chassis shows the same, at each reading", async () => {
  const rack = createRack({ clock, random, hosts: [{ name: "one", power: "Off" }] });
  const mock = await startRedfishMock({ rack, clock, random, username: "fence", password: new Secret(PASSWORD) });
  try {
    await using device = openFake(mock, { path: mock.systemPath("one") });
    for (let count = 0; count < 2; count += 1) {
      const { bmcUpMs: _bmcUpMs, ...reading } = await device.readPower(forever());
      assert.deepEqual(reading, { state: "Off", raw: "Off", agrees: true });
    }
    mock.addFault({ match: { path: "Chassis" }, action: { type: "override", without: ["PowerState"] } });
    await using alone = openFake(mock, { path: mock.systemPath("one") });
    const { bmcUpMs: _bmcUpMs, ...reading } = await alone.readPower(forever());
    assert.deepEqual(reading, { state: "Off", raw: "Off" });
  } finally {
    await mock.close();
    rack.stop();
  }
});

test("an Off says at each reading how long its BMC has been up, if the BMC reports when it has started", async () => {
  await using bmc = await startFakeBmc();
  const manager: Json = { DateTime: "2026-03-01T00:01:00Z", LastResetTime: "2026-03-01T00:00:00Z" };
  addManager(bmc, manager);
  bmc.system["PowerState"] = "Off";
  const skipping = skippable();
  await using device = openFake(bmc, { path: SYSTEM, clock: skipping.clock });
  const upSeconds = async (): Promise<number> =>
    Math.floor(((await device.readPower(forever())).bmcUpMs ?? NaN) / 1_000);
  const first = await upSeconds();
  assert.ok(first >= 60 && first < 80, `${first} s`);
  skipping.skip(5_000);
  assert.ok((await upSeconds()) >= first + 5);
  assert.equal(looks(bmc), 1, "it is asked once");
  bmc.sessions.clear();
  manager["DateTime"] = "2026-03-01T00:00:40Z";
  const again = await upSeconds();
  assert.ok(again >= 40 && again < 60, `${again} s`);
  delete manager["LastResetTime"];
  await using undated = openFake(bmc, { path: SYSTEM });
  assert.deepEqual((await undated.readPower(forever())).bmcUpMs, undefined);
});

test("a BMC is not believed after it was out of reach, by a driver opened since, as an agent does after every failure", async () => {
  const rack = createRack({ clock, random, hosts: [{ name: "one" }] });
  const mock = await startRedfishMock({ rack, clock, random, username: "fence", password: new Secret(PASSWORD) });
  mock.addFault({ match: { path: "Managers" }, action: { type: "override", without: ["LastResetTime"] } });
  mock.addFault({ match: { path: "Chassis" }, action: { type: "override", without: ["PowerState"] } });
  const skipping = skippable();
  const open = () => openFake(mock, { path: mock.systemPath("one"), clock: skipping.clock });
  try {
    await using before = open();
    await before.readPower(forever());
    rack.bmc("one").setReachability("refused");
    await assert.rejects(before.readPower(forever()), { code: "Unreachable" });
    rack.bmc("one").setReachability("up");
    rack.bmc("one").pretendPower("Off", 600_000);
    await using after = open();
    assert.match((await after.readPower(forever())).raw, /may have restarted/);
    skipping.skip(30_000);
    assert.equal((await after.readPower(forever())).state, "Off");
    // The same if a login could not reach the BMC.
    rack.bmc("one").setReachability("refused");
    await using unheard = open();
    await assert.rejects(unheard.readPower(forever()), { code: "Unreachable" });
    rack.bmc("one").setReachability("up");
    await using last = open();
    assert.match((await last.readPower(forever())).raw, /may have restarted/);
  } finally {
    await mock.close();
    rack.stop();
  }
});

test("each of several Managers must have settled, and only an On shows that", async () => {
  await using bmc = await startFakeBmc();
  const settled = { DateTime: "2026-03-01T10:00:00Z", LastResetTime: "2026-03-01T00:00:00Z" };
  const young = { DateTime: "2026-03-01T10:00:00Z", LastResetTime: "2026-03-01T09:59:50Z" };
  addManager(bmc, settled);
  const second = `${MANAGER}b`;
  (bmc.system["Links"] as Json)["ManagedBy"] = [{ "@odata.id": MANAGER }, { "@odata.id": second }];
  const { override } = bmc;
  bmc.override = (request) => (request.path === second ? ok(young) : override(request));
  await using device = openFake(bmc, { path: SYSTEM });
  bmc.system["PowerState"] = "PoweringOff";
  assert.equal((await device.readPower(forever())).state, "Changing");
  bmc.system["PowerState"] = "Off";
  assert.match((await device.readPower(forever())).raw, /started 10 s ago/);
  bmc.system["PowerState"] = "On";
  assert.equal((await device.readPower(forever())).state, "On");
  bmc.system["PowerState"] = "Off";
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a BMC that was not read for long may have restarted, though it knows our session still", async () => {
  await using bmc = await startFakeBmc();
  addManager(bmc, { DateTime: "2026-03-01T00:00:10Z", LastResetTime: "2026-03-01T00:00:00Z" });
  const { clock, skip } = skippable();
  await using device = openFake(bmc, { path: SYSTEM, clock });
  assert.equal((await device.readPower(forever())).state, "On");
  skip(11_000);
  bmc.system["PowerState"] = "Off";
  assert.match((await device.readPower(forever())).raw, /started 10 s ago/);
});

test("Managers that the account may not read, or whose times make no sense, are ignored", async () => {
  await using bmc = await startFakeBmc();
  bmc.system["PowerState"] = "Off";
  for (const manager of [
    { DateTime: "2015-03-13T04:14:33+06:00", LastResetTime: "2026-03-01T00:00:00Z" },
    { DateTime: "soon", LastResetTime: "2026-03-01T00:00:00Z" },
    { LastResetTime: 7 },
  ]) {
    addManager(bmc, manager);
    await using device = openFake(bmc, { path: SYSTEM });
    assert.equal((await device.readPower(forever())).state, "Off");
  }
  bmc.override = ({ path }) => (path === MANAGER ? { status: 403 } : undefined);
  await using device = openFake(bmc, { path: SYSTEM });
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a Manager that fails leaves the read failed, not Off", async () => {
  await using bmc = await startFakeBmc();
  addManager(bmc, {});
  bmc.system["PowerState"] = "Off";
  bmc.override = ({ path }) => (path === MANAGER ? { status: 500 } : undefined);
  await using device = openFake(bmc, { path: SYSTEM });
  await assert.rejects(device.readPower(forever()), hasCode("BadResponse"));
});

test("the Off of a host that has replaced the identified one does not count", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  await device.identify(forever());
  await device.forceOff(forever());
  bmc.system["UUID"] = "0b3f6b7e-1c1d-4f62-9d5a-2f6f0c5b9a11";
  assert.match((await device.readPower(forever())).raw, /another host answers/);
  await device.identify(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("an Off that comes from a cache on the way does not count", async () => {
  await using bmc = await startFakeBmc();
  bmc.system["PowerState"] = "Off";
  bmc.override = ({ path }) => (path === SYSTEM ? ok(bmc.system, { age: "12" }) : undefined);
  await using device = openFake(bmc, { path: SYSTEM });
  const reading = await device.readPower(forever());
  assert.equal(reading.state, "Unknown");
  assert.match(reading.raw, /cache/);
});

test("a host that was reset between two readings was not off all the while: the second reading does not count as Off", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc, { path: SYSTEM });
  const read = async (lastReset: string | undefined): Promise<string> => {
    bmc.system["LastResetTime"] = lastReset;
    return (await device.readPower(forever())).state;
  };
  bmc.system["PowerState"] = "Off";
  assert.equal(await read("2026-03-01T00:00:00Z"), "Off");
  assert.equal(await read("2026-03-01T00:00:00Z"), "Off");
  assert.equal(await read("2026-03-01T00:00:09Z"), "Unknown");
  assert.equal(await read("2026-03-01T00:00:09Z"), "Off");
  await device.forceOff(forever());
  assert.equal(await read("2026-03-01T00:00:20Z"), "Off", "an order may have reset it: the count starts again");
});

test("a BMC that restarts in the middle, loses the order and then shows Off does not fool us", async () => {
  const host = { name: "one", powerOffDelayMs: 50 };
  const rack = createRack({ clock, random, hosts: [host] });
  const mock = await startRedfishMock({ rack, clock, random, username: "fence", password: new Secret(PASSWORD) });
  const device = openFake(mock, { path: mock.systemPath("one") });
  try {
    mock.addFault({ match: { path: "Chassis" }, action: { type: "override", without: ["PowerState"] } });
    await device.identify(forever());
    rack.bmc("one").restart(0);
    rack.bmc("one").pretendPower("Off", 60_000);
    const reading = await device.readPower(forever());
    assert.equal(reading.state, "Unknown");
    assert.equal(rack.host("one").power, "On");
  } finally {
    await device.close();
    await mock.close();
    rack.stop();
  }
});

test("a fence takes eight requests, and nine if the System is not named", async () => {
  for (const [path, requestsMax] of [
    [SYSTEM, 8],
    ["", 9],
  ] as const) {
    await using bmc = await startFakeBmc();
    addManager(bmc, { DateTime: "2026-03-01T10:00:00Z", LastResetTime: "2026-03-01T00:00:00Z" });
    bmc.chassis["PowerState"] = "On";
    const manager = bmc.override;
    bmc.override = (request: Request) => {
      if (request.path === RESET) bmc.chassis["PowerState"] = request.body["ResetType"] === "ForceOff" ? "Off" : "On";
      return manager(request);
    };
    // The driver checks a plain HTTP address for redirects once per hour, here with a probe.
    await using probe = openFake(bmc, { path });
    await probe.identify(forever());
    await probe.close();
    bmc.requests.length = 0;
    const device = openFake(bmc, { path });
    await device.identify(forever());
    await device.forceOff(forever());
    assert.equal((await device.readPower(forever())).state, "Off");
    await delay(100);
    assert.equal((await device.readPower(forever())).state, "Off");
    await device.on(forever());
    await device.close();
    assert.equal(bmc.requests.length, requestsMax, bmc.log().join("\n"));
    assert.equal(bmc.system["PowerState"], "On");
  }
});

test("a BMC reports how long it has been up whatever the power is, and nothing if one of its Managers has no date", async () => {
  await using bmc = await startFakeBmc();
  const managers: Record<string, Json> = {
    [MANAGER]: { DateTime: "2026-03-01T00:01:00Z", LastResetTime: "2026-03-01T00:00:00Z" },
    [`${MANAGER}b`]: { DateTime: "2026-03-01T01:00:00Z", LastResetTime: "2026-03-01T00:00:00Z" },
  };
  bmc.system["Links"] = { ManagedBy: Object.keys(managers).map((path) => ({ "@odata.id": path })) };
  bmc.override = ({ path }) => (managers[path] === undefined ? undefined : ok(managers[path]));
  await using device = openFake(bmc, { path: SYSTEM });
  await device.identify(forever());
  assert.deepEqual(
    await device.readPowerLossSigns?.(forever()),
    { bmcUpMs: 3_600_000 },
    "the one that is up for longest",
  );
  managers[MANAGER] = { DateTime: "2026-03-01T00:01:00Z" };
  assert.deepEqual(await device.readPowerLossSigns?.(forever()), {});
});
