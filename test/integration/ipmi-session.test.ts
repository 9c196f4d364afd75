import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultRule } from "../../hack/ipmi-mock/faults.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";
import { Secret } from "../../src/runtime/secret.ts";
import type { IpmiWorld } from "./ipmi-fixture.ts";

// How sessions begin and end: privileges, refused logins, a full session table, restarts.

/** After this idle time, the driver treats a session as lost. */
const IDLE_MS = 26_000;

const opens = ({ mock }: IpmiWorld): number => mock.steps().filter((step) => step === "OpenSession").length;

test("a wrong password is found at RAKP 2, before the BMC has received our proof, and is not tried again at once", async () => {
  await using world = await startIpmiWorld();
  await assert.rejects(world.open({ password: "wrong" }).readPower(forever()), hasCode("AuthFailed"));
  const proofs = world.mock.requests.filter(({ step, data }) => step === "RAKP3" && data.length > 8);
  assert.deepEqual(proofs, []);
  const datagrams = world.mock.datagramCount;
  await assert.rejects(world.open({ password: "wrong" }).forceOff(forever()), hasCode("AuthFailed", /not tried again/));
  assert.equal(world.mock.datagramCount, datagrams);
});

test("many drivers with one wrong password try it once", async () => {
  await using world = await startIpmiWorld();
  const calls = Array.from({ length: 8 }, () => world.open({ password: "wrong" }).readPower(forever()));
  for (const call of await Promise.allSettled(calls)) {
    assert.ok(call.status === "rejected");
    hasCode("AuthFailed")(call.reason);
  }
  assert.equal(opens(world), 1);
});

test("a new password is tried at once, and after three refused ones none is for a while", async () => {
  await using world = await startIpmiWorld();
  await assert.rejects(world.open({ password: "wrong-1" }).readPower(forever()), hasCode("AuthFailed"));
  await world.open().readPower(forever());
  for (const password of ["wrong-2", "wrong-3"]) {
    await assert.rejects(world.open({ password }).readPower(forever()), hasCode("AuthFailed"));
  }
  const before = opens(world);
  await assert.rejects(world.open().readPower(forever()), hasCode("Busy", /too many logins/));
  assert.equal(opens(world), before);
  world.skip(31_000);
  await world.open().readPower(forever());
});

test("the pause after a refused login grows, up to a bound, and ends", async () => {
  await using world = await startIpmiWorld();
  const attempt = async (): Promise<number> => {
    const before = opens(world);
    await assert.rejects(world.open({ password: "wrong" }).readPower(forever()), hasCode("AuthFailed"));
    return opens(world) - before;
  };
  assert.equal(await attempt(), 1);
  world.skip(31_000);
  assert.equal(await attempt(), 1);
  world.skip(31_000);
  assert.equal(await attempt(), 0);
  world.skip(90_000);
  assert.equal(await attempt(), 1);
  world.skip(15 * 60_000);
  assert.equal(await attempt(), 1);
});

test("user names and passwords that IPMI cannot take are refused without a call to the BMC", async () => {
  await using world = await startIpmiWorld();
  const longName = world.open({ username: "a-name-of-17-byte" });
  await assert.rejects(longName.readPower(forever()), hasCode("AuthFailed", /16 bytes/));
  const longPassword = world.open({ password: "a password of 21 byte" });
  await assert.rejects(longPassword.readPower(forever()), hasCode("AuthFailed", /20 bytes/));
  assert.equal(world.mock.datagramCount, 0);
});

test("a password of 20 bytes and a user name of 16 fit", async () => {
  const [username, password] = ["u".repeat(16), "p".repeat(20)];
  await using world = await startIpmiWorld({ mock: { username, password: new Secret(password) } });
  await world.open({ username, password }).readPower(forever());
});

test("a login as Operator is used if the BMC refuses an Administrator", async () => {
  await using world = await startIpmiWorld({ mock: { privilegeMax: 3 } });
  await world.open().forceOff(forever());
  assert.equal(world.host.orders.length, 1);
  const privileges = world.mock.requests.filter(({ step }) => step === "OpenSession").map(({ data }) => data[1]);
  const roles = world.mock.requests.filter(({ step }) => step === "RAKP1").map(({ data }) => data[24]);
  assert.deepEqual(privileges, [4, 3]);
  assert.deepEqual(roles, [0x14, 0x13], "RAKP 1 names the privilege of Open Session");
});

test("an address with privilegelevel=OPERATOR requests only that privilege level", async () => {
  await using world = await startIpmiWorld({ mock: { privilegeMax: 3 } });
  await world.open({ query: "?privilegelevel=OPERATOR" }).forceOff(forever());
  const privileges = world.mock.requests.filter(({ step }) => step === "OpenSession").map(({ data }) => data[1]);
  assert.deepEqual(privileges, [3]);
});

for (const status of [0x09, 0x0d]) {
  test(`a login over IPMI that RAKP status ${status.toString(16)} refuses as Administrator continues as Operator`, async () => {
    await using world = await startIpmiWorld();
    world.mock.addFault({ steps: ["RAKP1"], times: 1, action: { type: "status", status } });
    await world.open().readPower(forever());
  });
}

test("a privilege level that is refused only after the session is open is lowered in that session", async () => {
  await using world = await startIpmiWorld();
  const action = { type: "completionCode", completionCode: 0x81 } as const;
  world.mock.addFault({ steps: ["SetSessionPrivilegeLevel"], times: 1, action });
  await world.open().forceOff(forever());
  assert.equal(opens(world), 1);
  world.mock.addFault({ steps: ["SetSessionPrivilegeLevel"], action });
  await assert.rejects(world.open().readPower(forever()), hasCode("PrivilegeTooLow"));
});

test("a user without the privilege to control power gets PrivilegeTooLow", async () => {
  await using world = await startIpmiWorld({ mock: { privilegeMax: 2 } });
  await assert.rejects(world.open().forceOff(forever()), hasCode("PrivilegeTooLow"));
});

for (const action of [
  { type: "data", data: [] },
  { type: "data", data: [1, 0x00, 0x20, 0x00, 0, 0, 0, 0] },
  { type: "data", data: [1, 0x80, 0x3f, 0x01, 0xff, 0xff, 0xff, 0xff] },
  { type: "completionCode", completionCode: 0xcc },
  { type: "badChecksum" },
] as const) {
  test(`a login over IPMI does not depend on the BMC's report of its authentication: ${JSON.stringify(action)}`, async () => {
    await using world = await startIpmiWorld();
    world.mock.addFault({
      steps: ["GetChannelAuthenticationCapabilities"],
      action: { ...action } as FaultRule["action"],
    });
    assert.equal((await world.open().readPower(forever())).state, "On");
  });
}

test("a login by an unknown user fails as AuthFailed", async () => {
  await using world = await startIpmiWorld();
  await assert.rejects(world.open({ username: "nobody" }).readPower(forever()), hasCode("AuthFailed", /0Dh/));
});

test("a full session table is Busy, and the driver is let in once a session ends", async () => {
  await using world = await startIpmiWorld({ mock: { sessionsMax: 1 } });
  const first = world.open();
  await first.readPower(forever());
  const second = world.open();
  await assert.rejects(second.readPower(forever()), hasCode("Busy", /no session is free/));
  await first.close();
  await second.readPower(forever());
});

test("handshakes that go wrong leave no place taken", async () => {
  await using world = await startIpmiWorld({ mock: { sessionsMax: 1 } });
  world.mock.addFault({ steps: ["RAKP1", "RAKP3"], times: 2, action: { type: "loseAnswer" } });
  await world.open().readPower(forever());
  await assert.rejects(world.open({ password: "wrong" }).readPower(forever()), hasCode("Busy"));
});

test("a handshake that gets stuck is started over with fresh ids, never continued", async () => {
  await using world = await startIpmiWorld();
  // Two faults for RAKP 3, because the driver also ends the handshake that was stuck at RAKP 1 with it.
  for (const [step, times] of [
    ["OpenSession", 1],
    ["RAKP1", 1],
    ["RAKP3", 2],
  ] as const) {
    world.mock.addFault({ steps: [step], times, action: { type: "loseAnswer" } });
  }
  await world.open().readPower(forever());
  const ids = world.mock.requests
    .filter(({ step }) => step === "OpenSession")
    .map(({ data }) => data.slice(4, 8).join());
  assert.equal(ids.length, 4);
  assert.equal(new Set(ids).size, 4);
});

test("a doubled RAKP 1 is not taken for a wrong password", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["RAKP1"], times: 1, action: { type: "duplicateRequest" } });
  await world.open().readPower(forever());
  assert.equal(opens(world), 2);
});

test("a BMC that has restarted is logged in at again for a reading", async () => {
  await using world = await startIpmiWorld();
  const device = world.open({ callTimeoutMs: 3_000 });
  await device.readPower(forever());
  world.bmc.restart(0);
  assert.equal((await device.readPower(forever())).state, "On");
  assert.equal(opens(world), 2);
});

test("an order into a session that is gone is Timeout, and not sent again in a new one", async () => {
  await using world = await startIpmiWorld();
  const device = world.open({ callTimeoutMs: 3_000 });
  await device.readPower(forever());
  world.bmc.restart(0);
  await assert.rejects(device.forceOff(forever()), hasCode("Timeout", /unknown/));
  assert.deepEqual(world.host.orders, []);
  assert.equal((await device.readPower(forever())).state, "On");
});

test("a session that was idle for long is replaced before it is relied on", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  await device.readPower(forever());
  world.skip(61_000);
  await device.forceOff(forever());
  assert.equal(world.host.orders.length, 1);
  assert.equal(opens(world), 2);
});

test("a port that does not listen or does not answer is Unreachable, and no handshake begins", async () => {
  await using world = await startIpmiWorld();
  world.bmc.setReachability("silent");
  const device = world.open({ connectTimeoutMs: 500 });
  await assert.rejects(device.readPower(forever()), hasCode("Unreachable", /does not answer/));
  assert.equal(opens(world), 0);
  world.bmc.setReachability("up");
  await device.readPower(forever());
  await world.mock.close();
  // The order was sent. That no process listens now does not prove that none did then.
  await assert.rejects(device.forceOff(forever()), hasCode("Timeout", /unknown/));
  await assert.rejects(world.open().readPower(forever()), hasCode("Unreachable"));
  await assert.rejects(world.open().forceOff(forever()), hasCode("Unreachable"));
});

test("a closed client ends its session, aborts its calls, and never logs in again", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  await device.readPower(forever());
  world.mock.addFault({ steps: ["GetChassisStatus"], action: { type: "loseAnswer" } });
  const reading = assert.rejects(device.readPower(forever()), hasCode("Aborted"));
  await Promise.all([device.close(), device.close()]);
  await reading;
  assert.equal(world.mock.sessionCount, 0);
  const before = world.mock.datagramCount;
  await assert.rejects(device.readPower(forever()), hasCode("Aborted"));
  await assert.rejects(device.forceOff(forever()), hasCode("Aborted"));
  assert.equal(world.mock.datagramCount, before);
});

test("closing during a login leaves no session behind", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["RAKP3"], action: { type: "loseAnswer" } });
  const device = world.open();
  const reading = assert.rejects(device.readPower(forever()), hasCode("Aborted"));
  while (!world.mock.steps().includes("RAKP3")) await new Promise((resolve) => setTimeout(resolve, 5));
  await device.close();
  await reading;
  // The driver does not wait for the answer to Close Session, because a BMC that hangs would not answer.
  for (let tries = 0; world.mock.sessionCount > 0 && tries < 200; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(world.mock.sessionCount, 0);
});

test("an abort ends a call at once", async () => {
  await using world = await startIpmiWorld();
  world.mock.addFault({ steps: ["GetChassisStatus"], action: { type: "loseAnswer" } });
  const stop = new AbortController();
  const reading = assert.rejects(world.open().readPower(stop.signal), hasCode("Aborted"));
  while (!world.mock.steps().includes("GetChassisStatus")) await new Promise((resolve) => setTimeout(resolve, 5));
  stop.abort();
  await reading;
});

test("the BMC gets one command at a time, from however many drivers", async () => {
  await using world = await startIpmiWorld();
  const devices = [world.open(), world.open(), world.open()];
  for (const device of devices) await device.readPower(forever());
  world.mock.addFault({ steps: ["GetChassisStatus"], action: { type: "delay", delayMs: 60 } });
  const before = world.mock.requests.length;
  await Promise.all(devices.map((device) => device.readPower(forever())));
  const times = world.mock.requests.slice(before).map(({ atMs }) => atMs);
  assert.ok(times.length >= 3);
  for (const [index, atMs] of times.entries()) {
    if (index > 0) assert.ok(atMs - (times[index - 1] ?? 0) >= 55, `requests at ${times.join(", ")}`);
  }
});

test("an Off of a BMC that was silent before, and may have restarted, is not believed at once", async () => {
  await using world = await startIpmiWorld();
  const device = world.open({ callTimeoutMs: 3_000 });
  await device.readPower(forever());
  world.bmc.restart(0);
  world.bmc.pretendPower("Off", 600_000);
  // The order is sent in the lost session.
  await assert.rejects(device.forceOff(forever()), hasCode("Timeout"));
  for (let reads = 0; reads < 3; reads += 1) {
    const reading = await device.readPower(forever());
    assert.equal(reading.state, "Unknown");
    assert.match(reading.raw, /power is off, but .* may have restarted/);
  }
  assert.equal(world.host.power, "On");
  world.skip(30_000);
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a BMC is not believed by a driver that was opened after the silence, as an agent does after every failure", async () => {
  await using world = await startIpmiWorld();
  const before = world.open({ callTimeoutMs: 1_500, connectTimeoutMs: 500 });
  await before.readPower(forever());
  world.bmc.setReachability("silent");
  await assert.rejects(before.readPower(forever()), hasCode("Unreachable"));
  await before.close();
  world.bmc.setReachability("up");
  world.bmc.pretendPower("Off", 600_000);
  const after = world.open();
  assert.equal((await after.readPower(forever())).state, "Unknown");
  world.skip(30_000);
  assert.equal((await after.readPower(forever())).state, "Off");
  // The same if the BMC did not answer a login.
  world.bmc.setReachability("silent");
  await assert.rejects(world.open({ connectTimeoutMs: 300 }).readPower(forever()), hasCode("Unreachable"));
  world.bmc.setReachability("up");
  assert.equal((await world.open().readPower(forever())).state, "Unknown");
});

test("an Off of a BMC counts if the BMC has shown the host On since it was silent", async () => {
  await using world = await startIpmiWorld({ host: { powerOffDelayMs: 0 } });
  const device = world.open({ callTimeoutMs: 3_000 });
  await device.readPower(forever());
  world.bmc.restart(0);
  assert.equal((await device.readPower(forever())).state, "On");
  await device.forceOff(forever());
  while (world.host.power !== "Off") await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a reading that a caller aborts does not count as a sign that the BMC has restarted", async () => {
  await using world = await startIpmiWorld({ host: { power: "Off" } });
  const device = world.open();
  await device.readPower(forever());
  world.mock.addFault({ steps: ["GetChassisStatus"], times: 1, action: { type: "loseAnswer" } });
  const stop = new AbortController();
  const reading = assert.rejects(device.readPower(stop.signal), hasCode("Aborted"));
  while (world.mock.steps().filter((step) => step === "GetChassisStatus").length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  stop.abort();
  await reading;
  assert.equal((await device.readPower(forever())).state, "Off");
});

test("a BMC with a key of its own (K_G) accepts only clients that have the key, as text or in hex", async () => {
  const text = "k_g of twenty bytes!";
  await using world = await startIpmiWorld({ mock: { bmcKey: new Secret(text) } });
  const hex = `0x${Buffer.from(text).toString("hex")}`;
  for (const bmcKey of [text, hex]) {
    const device = world.open({ ipmi: { bmcKey: new Secret(bmcKey) } });
    assert.equal((await device.readPower(forever())).state, "On");
    await device.close();
  }
  await assert.rejects(world.open().readPower(forever()), hasCode("Unsupported", /K_G\), and none is configured/));
  const other = world.open({ ipmi: { bmcKey: new Secret("another") } });
  await assert.rejects(other.readPower(forever()), hasCode("Unsupported", /the key \(K_G\) is not/));
  // The driver does not wait for the answer to Close Session.
  while (world.mock.sessionCount > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const datagrams = world.mock.datagramCount;
  const long = world.open({ ipmi: { bmcKey: new Secret(`${text}!`) } });
  await assert.rejects(long.readPower(forever()), hasCode("Unsupported", /1 to 20 bytes/));
  assert.equal(world.mock.datagramCount, datagrams);
});

test("an order is refused and an Off is not believed if another host answers after a new login", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  await device.identify(forever());
  world.bmc.pretendIdentity({ systemUUID: "11111111-2222-4333-8444-555555555555" });
  world.skip(IDLE_MS);
  const isRefused = hasCode("Refused", /not the one that was identified/);
  await assert.rejects(device.forceOff(forever()), isRefused);
  await assert.rejects(device.on(forever()), isRefused);
  await assert.rejects(device.setBootOverride("NetworkOnce", forever()), isRefused);
  assert.deepEqual(world.host.orders, []);
  assert.equal(world.host.bootSetting.enabled, "Disabled");
  const reading = await device.readPower(forever());
  assert.equal(reading.state, "Unknown");
  assert.match(reading.raw, /not the one that was identified/);
  // The driver only reports that the identity must be checked again. The caller decides whether this is the host.
  await device.identify(forever());
  await device.forceOff(forever());
  assert.deepEqual(
    world.host.orders.map(({ type }) => type),
    ["ForceOff"],
  );
});

test("the host is identified again, once, after a new login over IPMI and before the next order", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  const asked = (): number => world.mock.steps().filter((step) => step === "GetSystemGUID").length;
  await device.identify(forever());
  await device.readPower(forever());
  assert.equal(asked(), 1);
  world.skip(IDLE_MS);
  await device.forceOff(forever());
  assert.equal(asked(), 2);
  assert.equal(opens(world), 2);
  await device.on(forever());
  assert.equal(asked(), 2);
});
