import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { BmcGate } from "../../src/bmc/gate/bmc-gate.ts";
import { createOpenDevice } from "../../src/bmc/devices/open-device.ts";
import type { PowerProof } from "../../src/bmc/devices/wait-for-power.ts";
import { POLL_MS_MIN, waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock as clock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { BmcAt, BenchRack } from "./bmc-rack.ts";
import { PASSWORD, USERNAME } from "./bmc-rack.ts";

// The clients that are compared: our own and those of other projects.

/** All devices share these, as in an agent. */
const deps = { clock, logger: createLogger("warn") };
const openDevice = createOpenDevice(new BmcGate(clock));

/** Our driver for one BMC of the rack. */
export function openBmc(rack: Pick<BenchRack, "sha256Fingerprint">, { address }: BmcAt): PowerDriver {
  const { sha256Fingerprint } = rack;
  return openDevice(
    {
      address,
      username: USERNAME,
      password: new Secret(PASSWORD),
      tls: { insecureSkipVerify: false, ...(sha256Fingerprint !== undefined && { sha256Fingerprint }) },
      timeouts: { connectTimeoutMs: 30_000, callTimeoutMs: 60_000 },
    },
    deps,
  );
}

/** What one fence asks of one BMC: its identity, the power-off, and two fresh readings of Off. */
export async function fence(device: PowerDriver, timeoutMs: number): Promise<PowerProof> {
  const signal = new AbortController().signal;
  try {
    await device.identify(signal);
    await device.forceOff(signal);
    return await waitForPower(device, "Off", { clock, pollMs: POLL_MS_MIN, timeoutMs, freshReads: 2 }, signal);
  } finally {
    await device.close();
  }
}

/** Runs a program of another project. @returns its exit code; undefined if it is not installed. */
export function runClient(command: string, args: readonly string[]): Promise<number | undefined> {
  const env = { ...process.env, IPMI_PASSWORD: PASSWORD, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` };
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: "ignore", env });
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") resolve(undefined);
      else reject(error);
    });
    child.once("exit", (code) => resolve(code ?? -1));
  });
}

/** Arguments of ipmitool for one BMC, with the cipher suite that our driver chooses. */
export function ipmitoolArgs({ port }: BmcAt, ...command: string[]): string[] {
  return ["-I", "lanplus", "-C", "17", "-H", "127.0.0.1", "-p", String(port), "-U", USERNAME, "-E", ...command];
}

/** CPU time of this process, user and system, in milliseconds. */
export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

// USER_HZ is 100 on every Linux that Node runs on (man 5 proc).
const TICK_MS = 10;

/** CPU time of the child processes that have ended, in milliseconds (Linux). */
export async function childrenCpuMs(): Promise<number> {
  const stat = await readFile("/proc/self/stat", "utf8");
  // The command in parentheses may hold spaces; cutime and cstime are the 14th and 15th fields behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}
