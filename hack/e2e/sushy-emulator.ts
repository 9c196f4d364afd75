import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Agent, request } from "undici";
import { systemClock } from "../../src/runtime/system.ts";
import type { Progress } from "../control-plane/binaries.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { freePorts } from "../lib/ports.ts";
import { startChild } from "../lib/processes.ts";
import { run } from "../lib/run.ts";
import { installPythonTools } from "./python-tools.ts";

const LAUNCHER = fileURLToPath(new URL("sushy_bmc.py", import.meta.url));

const READY_TIMEOUT_MS = 30_000;
const CALL_TIMEOUT_MS = 10_000;
/** The user agent of this harness. `sushy_bmc.py` does not record its requests. */
const HARNESS = "ironfence-harness";

/** The account of every emulated BMC. */
export const BMC_USERNAME = "admin";
export const BMC_PASSWORD = "emulated";

/** A recorded request: a power order with its Redfish ResetType, or a reading by the agent with the answer `Off`. */
export interface BmcRecord {
  /** Milliseconds since the epoch. */
  atMs: number;
  /** UUID of the System. */
  system: string;
  kind: "order" | "read";
  value: string;
}

/** A running sushy-emulator with one System per host. */
export interface SushyEmulator {
  /** `https://127.0.0.1:PORT`, with a certificate signed by `caPem`. */
  readonly url: string;
  readonly caPem: string;
  /** Rejects when the emulator ends by itself. */
  readonly failed: Promise<never>;
  /** Reads a System's PowerState from the emulator's own API. */
  powerState(systemUuid: string): Promise<string>;
  /** Sends a power order, as a user on the web page of the BMC would. */
  order(systemUuid: string, resetType: "On" | "ForceOff"): Promise<void>;
  /**
   * Does what the firmware does at power-on: returns the boot target (`Pxe`, `Hdd`), and clears a one-time override.
   */
  takeBootTarget(systemUuid: string): Promise<string>;
  /** All power orders and Off readings of one System so far, in order. */
  records(systemUuid: string): Promise<BmcRecord[]>;
  stop(): Promise<void>;
}

/**
 * Starts the emulator: HTTPS, basic authentication, all Systems on.
 *
 * @param options.powerDelayMs how long every power change takes.
 */
export async function startSushyEmulator(
  options: { systems: readonly { uuid: string; name: string }[]; powerDelayMs: number; progress: Progress },
  signal: AbortSignal,
): Promise<SushyEmulator> {
  const python = join(await installPythonTools(options.progress, signal), "python");
  const folder = await mkdtemp(join(tmpdir(), "ironfence-sushy-"));
  const [port = 0] = await freePorts(1);
  const caPem = await writeConfiguration(python, folder, port, options.systems, signal);
  const recordFile = join(folder, "record.jsonl");
  await appendFile(recordFile, "");

  let stopping = false;
  const child = startChild("sushy-emulator", python, [LAUNCHER, "--config", join(folder, "emulator.conf"), "--fake"], {
    logFile: join(folder, "emulator.log"),
    cwd: folder,
    env: { IRONFENCE_BMC_DELAY_S: String(options.powerDelayMs / 1000), IRONFENCE_BMC_RECORD: recordFile },
  });
  const failed = child.ended.then((message) => {
    if (stopping) return new Promise<never>(() => undefined);
    throw new Error(message);
  });
  failed.catch(() => undefined);

  const url = `https://127.0.0.1:${port}`;
  const agent = new Agent({ connect: { ca: caPem, timeout: CALL_TIMEOUT_MS } });
  const authorization = `Basic ${Buffer.from(`${BMC_USERNAME}:${BMC_PASSWORD}`).toString("base64")}`;
  const call = async (method: "GET" | "POST" | "PATCH", path: string, body?: unknown): Promise<string> => {
    const response = await request(`${url}${path}`, {
      method,
      dispatcher: agent,
      headers: { authorization, "content-type": "application/json", "user-agent": HARNESS },
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
    return text;
  };
  const powerState = async (uuid: string): Promise<string> =>
    (JSON.parse(await call("GET", `/redfish/v1/Systems/${uuid}`)) as { PowerState: string }).PowerState;
  const stop = async (): Promise<void> => {
    stopping = true;
    await agent.destroy();
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  };

  try {
    await Promise.race([waitUntilReady(() => call("GET", "/redfish/v1/Systems"), signal), failed]);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    caPem,
    failed,
    powerState,
    order: async (uuid, resetType) => {
      await call("POST", `/redfish/v1/Systems/${uuid}/Actions/ComputerSystem.Reset`, { ResetType: resetType });
    },
    takeBootTarget: async (uuid) => {
      const path = `/redfish/v1/Systems/${uuid}`;
      const system = JSON.parse(await call("GET", path)) as { Boot: { BootSourceOverrideTarget: string } };
      await call("PATCH", path, { Boot: { BootSourceOverrideTarget: "Hdd" } });
      return system.Boot.BootSourceOverrideTarget;
    },
    records: async (uuid) =>
      (await readFile(recordFile, "utf8"))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as BmcRecord)
        .filter((record) => record.system === uuid),
    stop,
  };
}

/** Writes the configuration of the emulator. @returns the certificate authority that a client must trust. */
async function writeConfiguration(
  python: string,
  folder: string,
  port: number,
  systems: readonly { uuid: string; name: string }[],
  signal: AbortSignal,
): Promise<string> {
  const ca = await createCertificateAuthority(systemClock, "ironfence emulated BMCs");
  const certificate = await ca.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const file = (name: string): string => join(folder, name);
  await writeFile(file("bmc.crt"), certificate.certPem);
  await writeFile(file("bmc.key"), certificate.keyPem, { mode: 0o600 });
  const script = "import bcrypt,sys;print(bcrypt.hashpw(sys.argv[1].encode(),bcrypt.gensalt(4)).decode())";
  const hash = await run(python, ["-c", script, BMC_PASSWORD], { env: {}, timeoutMs: 30_000, signal });
  await writeFile(file("htpasswd"), `${BMC_USERNAME}:${hash.trim()}\n`, { mode: 0o600 });
  // The emulator reads its configuration as Python; JSON's strings, numbers and lists are Python's too.
  const settings: Record<string, unknown> = {
    SUSHY_EMULATOR_LISTEN_IP: "127.0.0.1",
    SUSHY_EMULATOR_LISTEN_PORT: port,
    SUSHY_EMULATOR_SSL_CERT: file("bmc.crt"),
    SUSHY_EMULATOR_SSL_KEY: file("bmc.key"),
    SUSHY_EMULATOR_AUTH_FILE: file("htpasswd"),
    SUSHY_EMULATOR_STATE_DIR: folder,
    SUSHY_EMULATOR_FAKE_SYSTEMS: systems.map(({ uuid, name }) => ({ uuid, name, power_state: "On", nics: [] })),
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  await writeFile(file("emulator.conf"), `${lines.join("\n")}\n`);
  return ca.certPem;
}

async function waitUntilReady(probe: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    signal.throwIfAborted();
    try {
      await probe();
      return;
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
