import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { systemClock as clock } from "../../src/runtime/system.ts";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import { forever, openFake, RESET, SESSIONS, startFakeBmc, SYSTEM } from "./bmc-fixture.ts";
import type { Request } from "./bmc-fixture.ts";
import { startIpmiWorld } from "./ipmi-fixture.ts";

// Other clients may use the same BMC, so the driver writes only sessions, power orders and, for a network boot, the
// boot override.

/** Makes every call of a driver except the boot override. */
async function fence(device: PowerDriver): Promise<void> {
  await device.identify(forever());
  await device.readSupportedOrders?.(forever());
  await device.readPower(forever());
  await device.forceOff(forever());
  await waitForPower(device, "Off", { clock, pollMs: 20, timeoutMs: 10_000, freshReads: 2 }, forever());
  await device.on(forever());
  await device.readBootOverride(forever());
}

async function bootFromNetwork(device: PowerDriver): Promise<void> {
  await device.setBootOverride("NetworkOnce", forever());
  await device.setBootOverride("None", forever());
}

/** A short description of a request that changes something, without the values. */
const inWords = ({ method, path, body }: Request): string =>
  `${method} ${path.replace(/Sessions\/.*/, "Sessions/…")} ${JSON.stringify(body, (key, value: unknown) =>
    typeof value === "string" && key !== "ResetType" ? "…" : value,
  )}`;

test("the driver writes a session, its end and the two orders by Redfish, and nothing else", async () => {
  await using bmc = await startFakeBmc();
  const device = openFake(bmc);
  await fence(device);
  await device.close();
  const writes = bmc.requests.filter(({ method }) => method !== "GET");
  assert.deepEqual(writes.map(inWords), [
    `POST ${SESSIONS} {"UserName":"…","Password":"…"}`,
    `POST ${RESET} {"ResetType":"ForceOff"}`,
    `POST ${RESET} {"ResetType":"On"}`,
    `DELETE ${SESSIONS}/… {}`,
  ]);
});

test("a network boot by Redfish writes the override of one boot, and nothing else of the System", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await bootFromNetwork(device);
  const writes = bmc.requests.filter(({ method, path }) => method !== "GET" && !path.startsWith(SESSIONS));
  const patch = `PATCH ${SYSTEM} {"Boot":{"BootSourceOverrideEnabled":"…","BootSourceOverrideTarget":"…"}}`;
  assert.deepEqual(writes.map(inWords), [patch, patch]);
});

/** Requests that read, and requests that open and end a session. */
const HARMLESS: ReadonlySet<string> = new Set([
  "GetChannelAuthenticationCapabilities",
  "GetChannelCipherSuites",
  "OpenSession",
  "RAKP1",
  "RAKP3",
  "SetSessionPrivilegeLevel",
  "CloseSession",
  "GetDeviceID",
  "GetSystemGUID",
  "GetChassisStatus",
  "GetSystemBootOptions",
  "GetFRUInventoryAreaInfo",
  "ReadFRUData",
]);

test("the driver writes a session, its end, off and on by IPMI, and nothing else", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  await fence(device);
  await device.close();
  const writes = world.mock.requests.filter(({ step }) => !HARMLESS.has(step));
  assert.deepEqual(
    writes.map(({ step, data }) => [step, ...data]),
    [
      ["ChassisControl", 0],
      ["ChassisControl", 1],
    ],
  );
});

test("a network boot by IPMI writes the boot flags, and that they outlast the order's minute", async () => {
  await using world = await startIpmiWorld();
  const device = world.open();
  await bootFromNetwork(device);
  await device.close();
  const writes = world.mock.requests.filter(({ step }) => !HARMLESS.has(step));
  assert.deepEqual(
    new Set(writes.map(({ step, data }) => `${step} ${data[0]}`)),
    new Set(["SetSystemBootOptions 3", "SetSystemBootOptions 5"]),
  );
});

test("the last reset by Redfish is the one that the last reading has shown, without a request of its own", async () => {
  await using bmc = await startFakeBmc();
  await using device = openFake(bmc);
  await device.identify(forever());
  assert.equal(device.lastReset, undefined);
  bmc.system["LastResetTime"] = "2026-01-01T00:00:00+00:00";
  await device.readPower(forever());
  const requests = bmc.requests.length;
  assert.equal(device.lastReset, "2026-01-01T00:00:00+00:00");
  assert.equal(bmc.requests.length, requests);
});
