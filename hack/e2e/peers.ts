import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { BmcGate } from "../../src/bmc/gate/bmc-gate.ts";
import { createOpenDevice } from "../../src/bmc/devices/open-device.ts";
import type { DeviceConfig } from "../../src/bmc/interface/device-config.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { seededRandom } from "../../test/lib/seeded-random.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { run } from "../lib/run.ts";
import { createRack } from "../rack/rack.ts";
import type { Host } from "../rack/host.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import { eventually } from "./eventually.ts";

// Our drivers and BMCs that others wrote; our simulated BMC and clients that others wrote.

const COMMAND_TIMEOUT_MS = 120_000;
const POWER_TIMEOUT_MS = 30_000;

/** A signal that is never aborted: the calls made with it have deadlines of their own. */
export const forever = (): AbortSignal => new AbortController().signal;

const openDevice = createOpenDevice(new BmcGate(systemClock));

/** Opens our driver for a peer's BMC; `caPem` is what vouches for its certificate. */
export function openPeer(login: {
  address: string;
  username: string;
  password: string;
  caPem?: string;
  ipmi?: DeviceConfig["ipmi"];
  snmp?: DeviceConfig["snmp"];
}): PowerDriver & AsyncDisposable {
  const device = openDevice(
    {
      address: login.address,
      username: login.username,
      password: new Secret(login.password),
      tls: { insecureSkipVerify: false, ...(login.caPem !== undefined && { ca: login.caPem }) },
      timeouts: { connectTimeoutMs: 5_000, callTimeoutMs: 20_000 },
      ...(login.ipmi !== undefined && { ipmi: login.ipmi }),
      ...(login.snmp !== undefined && { snmp: login.snmp }),
    },
    { clock: systemClock, logger: createLogger("silent") },
  );
  return Object.assign(device, { [Symbol.asyncDispose]: () => device.close() });
}

/** Sets and clears the boot from the network, and reads each back. */
export async function overrideBoot(device: PowerDriver): Promise<void> {
  await device.setBootOverride("NetworkOnce", forever());
  assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
  await device.setBootOverride("None", forever());
  assert.equal(await device.readBootOverride(forever()), "None");
}

/** A fence, with each effect read back: identity, off, off again, on. */
export async function fenceDevice(device: PowerDriver, systemUUID: string): Promise<void> {
  const reads = (state: "On" | "Off"): Promise<true> =>
    eventually(`the device reads ${state}`, POWER_TIMEOUT_MS, async () => {
      const reading = await device.readPower(forever());
      return reading.state === state || undefined;
    });
  assert.equal((await device.identify(forever())).systemUUID, systemUUID);
  await reads("On");
  await device.forceOff(forever());
  await reads("Off");
  await device.forceOff(forever());
  assert.equal((await device.readPower(forever())).state, "Off");
  await device.on(forever());
  await reads("On");
}

/** Asserts that a reading of the power fails with `code`, and closes the device. */
export async function assertReadFails(device: PowerDriver, code: BmcErrorCode): Promise<void> {
  try {
    await assert.rejects(device.readPower(forever()), (error) => error instanceof BmcError && error.code === code);
  } finally {
    await device.close();
  }
}

/** Runs a program of a peer's. @returns what it printed. */
export function runPeer(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  return run(command, args, { env, timeoutMs: COMMAND_TIMEOUT_MS, signal: forever() });
}

/** Our Redfish mock over HTTPS, in front of three hosts. */
export interface RedfishWorld {
  readonly url: string;
  readonly port: string;
  readonly username: string;
  readonly password: string;
  /** The file of the certificate authority, and the environment that makes Python's clients trust it and no other. */
  readonly caFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** A folder for what a peer writes. */
  readonly folder: string;
  host(name: string): Host;
  /** The types of the orders that a host has taken. */
  orders(name: string): string[];
  readonly sessionCount: number;
  [Symbol.asyncDispose](): Promise<void>;
}

export const REDFISH_HOSTS = ["host-1", "host-2", "host-3"] as const;

/**
 * DMTF's protocol validator asks the session's token for the statistics of chance, which about one in fifty of truly
 * random tokens misses: the same tokens each time, so that a test that passes today passes tomorrow.
 */
const TOKEN_SEED = 1;

/** Starts it; a session table of 32 leaves room for those that validators open and forget. */
export async function startRedfishWorld(): Promise<RedfishWorld> {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-redfish-peers-"));
  const username = "admin";
  const password = "mock-password";
  const ca = await createCertificateAuthority(systemClock, "ironfence simulated BMCs");
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, ca.certPem);
  const deps = { clock: systemClock, random: seededRandom(TOKEN_SEED) };
  const timing = { powerOffDelayMs: 100, powerOnDelayMs: 100, bootMs: 100 };
  const rack = createRack({ ...deps, hosts: REDFISH_HOSTS.map((name) => ({ name, ...timing })) });
  const mock = await startRedfishMock({
    ...deps,
    rack,
    tls: await ca.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" }),
    username,
    password: new Secret(password),
    sessionsMax: 32,
  });
  return {
    url: mock.url,
    port: new URL(mock.url).port,
    username,
    password,
    caFile,
    env: { REQUESTS_CA_BUNDLE: caFile },
    folder,
    host: (name) => rack.host(name),
    orders: (name) => rack.host(name).orders.map(({ type }) => type),
    get sessionCount() {
      return mock.sessionCount;
    },
    [Symbol.asyncDispose]: async () => {
      await mock.close();
      rack.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
