import assert from "node:assert/strict";
import { test } from "node:test";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { createRack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { RedfishMockOptions } from "../../hack/redfish-mock/server.ts";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock as clock, systemRandom as random } from "../../src/runtime/system.ts";
import { forever, hasCode, openFake, PASSWORD } from "./bmc-fixture.ts";

// The driver with a complete simulated BMC: TLS, sessions, and hosts with realistic delays.

async function startRack(ways: Pick<RedfishMockOptions, "resetTypesIn" | "bootIn"> = {}) {
  const authority = await createCertificateAuthority(clock, "rack CA");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const spec = { powerOffDelayMs: 400, powerOnDelayMs: 200, bootMs: 100 };
  const rack = createRack({
    clock,
    random,
    hosts: [
      { name: "one", serialNumber: "SN-1", ...spec },
      { name: "two", ...spec },
    ],
  });
  const options = { rack, clock, random, tls, username: "fence", password: new Secret(PASSWORD), ...ways };
  const mock = await startRedfishMock(options);
  return {
    rack,
    mock,
    tls: { sha256Fingerprint: tls.sha256Fingerprint, insecureSkipVerify: false },
    [Symbol.asyncDispose]: async () => {
      await mock.close();
      rack.stop();
    },
  };
}

const wait = { clock, pollMs: 250, timeoutMs: 20_000, freshReads: 2 };

for (const ways of [
  { resetTypesIn: "AllowableValues", bootIn: "System" },
  { resetTypesIn: "ActionInfo", bootIn: "Settings" },
] as const) {
  const where = `with reset types in ${ways.resetTypesIn} and the boot override in ${ways.bootIn}`;
  test(`a host is powered off, proven off, set to boot from the network and powered on ${where}, and no other host is`, async () => {
    await using world = await startRack(ways);
    const { rack, mock, tls } = world;
    const device = openFake(mock, { path: mock.systemPath("one"), tls });
    assert.equal((await device.identify(forever())).serialNumber, "SN-1");
    await device.forceOff(forever());
    const off = await waitForPower(device, "Off", wait, forever());
    assert.ok(off.proven);
    assert.equal(rack.host("one").power, "Off");
    assert.equal(rack.host("two").power, "On");
    await device.forceOff(forever());
    await device.setBootOverride("NetworkOnce", forever());
    assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
    assert.equal(rack.host("one").bootSetting.target, "Pxe");
    await device.setBootOverride("None", forever());
    assert.equal(await device.readBootOverride(forever()), "None");
    await device.on(forever());
    const on = await waitForPower(device, "On", { ...wait, freshReads: 1 }, forever());
    assert.ok(on.proven);
    await device.close();
    assert.equal(mock.sessionCount, 0);
    assert.equal(mock.connectionCount, 1, "one connection serves the whole operation");
  });
}

test("a task that never ends delays nothing: the power state is the proof", async () => {
  await using world = await startRack();
  const { mock, tls } = world;
  mock.addFault({ match: {}, action: { type: "task", endless: true, retryAfterSeconds: 1 } });
  await using device = openFake(mock, { path: mock.systemPath("one"), tls });
  await device.forceOff(forever());
  assert.ok((await waitForPower(device, "Off", wait, forever())).proven);
});

test("an order that took effect though its answer was lost is seen by reading, and was sent once", async () => {
  await using world = await startRack();
  const { mock, tls } = world;
  mock.addFault({ match: { method: "POST", path: "Reset" }, action: { type: "drop", effect: "done" } });
  await using device = openFake(mock, { path: mock.systemPath("one"), tls });
  await assert.rejects(device.forceOff(forever()), hasCode("Unreachable"));
  assert.ok((await waitForPower(device, "Off", wait, forever())).proven);
  assert.equal(mock.requests.filter(({ path }) => path.includes("Reset")).length, 1);
});

test("a service with several Systems is ambiguous if the address names none, and nothing is powered", async () => {
  await using world = await startRack();
  const { rack, mock, tls } = world;
  await using device = openFake(mock, { tls });
  await assert.rejects(device.forceOff(forever()), hasCode("SystemAmbiguous"));
  assert.deepEqual(
    rack.hosts.map(({ power }) => power),
    ["On", "On"],
  );
});

test("two drivers of one host never overlap, and neither waits for a BMC that hangs", { timeout: 60_000 }, async () => {
  await using world = await startRack();
  await using silent = await startRack();
  for (const host of silent.rack.hosts) silent.rack.bmc(host.name).setReachability("silent");
  const { mock, tls } = world;
  mock.addFault({ match: { method: "GET", path: "Systems/one" }, action: { type: "delay", delayMs: 300 } });
  await using first = openFake(mock, { path: mock.systemPath("one"), tls });
  await using second = openFake(mock, { path: mock.systemPath("one"), tls });
  await using hanging = openFake(silent.mock, { path: silent.mock.systemPath("one"), tls, callTimeoutMs: 5_000 });
  let hangs = true;
  const hung = assert.rejects(hanging.readPower(forever()), hasCode("Timeout")).finally(() => (hangs = false));
  const startMs = clock.monotonicMs();
  await Promise.all([first.readPower(forever()), second.forceOff(forever())]);
  assert.ok(clock.monotonicMs() - startMs >= 600, "one after the other");
  assert.ok(hangs, "the other BMC still hangs");
  await hung;
});
