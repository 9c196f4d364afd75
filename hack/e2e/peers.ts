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

// Helpers to test our drivers against BMCs of other projects, and our simulated BMC against clients of other projects.

const COMMAND_TIMEOUT_MS = 120_000;
const POWER_TIMEOUT_MS = 30_000;

/** A signal that is never aborted: the calls made with it have deadlines of their own. */
export const forever = (): AbortSignal => new AbortController().signal;

const openDevice = createOpenDevice(new BmcGate(systemClock));

/** Opens our driver for the BMC of another project. `caPem` is the certificate authority of that BMC. */
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

/** Sets and clears the network boot override, and reads it back each time. */
export async function overrideBoot(device: PowerDriver): Promise<void> {
  await device.setBootOverride("NetworkOnce", forever());
  assert.equal(await device.readBootOverride(forever()), "NetworkOnce");
  await device.setBootOverride("None", forever());
  assert.equal(await device.readBootOverride(forever()), "None");
}

/** Runs a fence and reads each result back: identity, off, off again, on. */
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

/** Runs a program of another project. @returns its output. */
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
  /**
   * The file of the certificate authority, and the environment variables that make Python clients trust only that one.
   */
  readonly caFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** A folder for files that the other program writes. */
  readonly folder: string;
  host(name: string): Host;
  /** The types of the power orders that a host has accepted. */
  orders(name: string): string[];
  readonly sessionCount: number;
  [Symbol.asyncDispose](): Promise<void>;
}

export const REDFISH_HOSTS = ["host-1", "host-2", "host-3"] as const;

/**
 * DMTF's protocol validator runs a statistical test of randomness on the session token. About one in fifty truly random
 * tokens fails it, so the tokens come from a fixed seed.
 */
const TOKEN_SEED = 1;

/** Starts the mock. Its session table has 32 entries, because validators open sessions without closing them. */
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
