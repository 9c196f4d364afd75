import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BmcReport } from "./bmc-rack.ts";
import { PASSWORD, startBenchRack, USERNAME } from "./bmc-rack.ts";
import { childrenCpuMs, fence, ipmitoolArgs, openBmc, ownCpuMs, runClient } from "./bmc-clients.ts";
import { benchRackAtOnce } from "./bmc-rack-at-once.ts";
import { figure, median, row } from "./report.ts";

const ROUNDS = 5;
const SESSIONS_A_ROUND = 60;
const READS_A_ROUND = 400;
const IPMITOOL_A_ROUND = 12;
const BMCS_AT_ONCE = 300;
const FENCES = 20;
const FENCE_TIMEOUT_MS = 60_000;

const forever = new AbortController().signal;

/**
 * Compares our drivers with those of other projects, on simulated BMCs in a separate process. Rounds of both alternate,
 * so that other load on the machine affects both. If a program is not installed, it is named and the exit code is 1.
 */
export async function benchBmc(): Promise<void> {
  await benchIpmiStatus();
  await benchIpmiAtOnce();
  await benchRedfishFence();
  await benchRackAtOnce();
}

async function benchIpmiStatus(): Promise<void> {
  await using rack = await startBenchRack([{ name: "host-1", protocol: "ipmi", powerOffDelayMs: 0 }]);
  const bmc = onlyOf(rack.bmcs);
  const whole = new Sample();
  const open = new Sample();
  const tool = new Sample();
  const wholeSession = async (): Promise<void> => {
    const device = openBmc(rack, bmc);
    await device.readPower(forever);
    await device.close();
  };
  const device = openBmc(rack, bmc);
  // These runs are not measured: V8 compiles the code first, and an agent that runs for months has compiled code.
  for (let run = 0; run < SESSIONS_A_ROUND; run++) await wholeSession();
  for (let run = 0; run < READS_A_ROUND; run++) await device.readPower(forever);
  let hasTool = true;
  for (let round = 0; round < ROUNDS; round++) {
    await whole.take(SESSIONS_A_ROUND, ownCpuMs, wholeSession);
    await open.take(READS_A_ROUND, ownCpuMs, () => device.readPower(forever));
    if (!hasTool) continue;
    await tool.take(IPMITOOL_A_ROUND, childrenCpuMs, async () => {
      const code = await runClient("ipmitool", ipmitoolArgs(bmc, "chassis", "power", "status"));
      if (code !== undefined && code !== 0) throw new Error(`ipmitool ended with ${code}`);
      hasTool = code === 0;
    });
  }
  await device.close();
  row("IPMI status, whole session", whole.text());
  row("IPMI status, on an open session", open.text());
  if (!hasTool) return missing("IPMI status with ipmitool, a process each", "ipmitool");
  row("IPMI status with ipmitool, a process each", tool.text());
  row("… next to one of our whole sessions", tool.timesOf(whole));
  ratio("IPMI status: CPU of a whole session, of that of ipmitool", whole.cpuOf(tool), 0.1);
}

async function benchIpmiAtOnce(): Promise<void> {
  const hosts = Array.from({ length: BMCS_AT_ONCE }, (_, index) => ({
    name: `host-${index + 1}`,
    protocol: "ipmi" as const,
    powerOffDelayMs: 0,
  }));
  await using rack = await startBenchRack(hosts);
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  try {
    // ipmitool sends all lines of a file in one session, as our driver does. This is the fairest comparison.
    const file = join(folder, "off-and-two-reads");
    await writeFile(file, "chassis power off\nchassis power status\nchassis power status\n");
    const ours = new Sample();
    const theirs = new Sample();
    let hasTool = true;
    for (let round = 0; round < 3; round++) {
      await rack.reset();
      await ours.take(1, ownCpuMs, () =>
        Promise.all(
          rack.bmcs.map(async (bmc) => {
            const device = openBmc(rack, bmc);
            await device.forceOff(forever);
            await device.readPower(forever);
            await device.readPower(forever);
            await device.close();
          }),
        ),
      );
      if ((await rack.report()).some(({ offAtMs }) => offAtMs === undefined)) throw new Error("a host is still on");
      if (!hasTool) continue;
      await rack.reset();
      await theirs.take(1, childrenCpuMs, async () => {
        const codes = await Promise.all(rack.bmcs.map((bmc) => runClient("ipmitool", ipmitoolArgs(bmc, "exec", file))));
        hasTool = !codes.includes(undefined);
        const failed = codes.filter((code) => code !== 0).length;
        if (hasTool && failed > 0) throw new Error(`${failed} runs of ipmitool failed`);
      });
    }
    const what = `${BMCS_AT_ONCE} BMCs at once, each off and two reads`;
    row(what, ours.text());
    if (!hasTool) return missing(`${what}: ipmitool`, "ipmitool");
    row("… with ipmitool, a process and a session each", theirs.text());
    row("… next to ours", theirs.timesOf(ours));
    ratio(`${what}: CPU, of that of ipmitool`, ours.cpuOf(theirs), 0.1);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function benchRedfishFence(): Promise<void> {
  // Each host takes a little longer than the one before, so that hosts turn off at all moments between two polls of a
  // client.
  const offMs = (index: number): number => 1_000 + index * (1_000 / FENCES);
  const hosts = Array.from({ length: FENCES }, (_, index) => ({
    name: `host-${index + 1}`,
    protocol: "redfish+tls" as const,
    powerOffDelayMs: offMs(index),
  }));
  await using rack = await startBenchRack(hosts);
  const aboveOurs: number[] = [];
  const provenAtMs = new Map<string, number>();
  for (const [index, bmc] of rack.bmcs.entries()) {
    const startMs = performance.now();
    const proof = await fence(openBmc(rack, bmc), FENCE_TIMEOUT_MS);
    aboveOurs.push(performance.now() - startMs - offMs(index));
    if (!proof.proven) throw new Error(`${bmc.name} is not proven off`);
    provenAtMs.set(bmc.name, Date.now());
  }
  const reports = await rack.report();
  const lags = reports.map((report) => (provenAtMs.get(report.name) ?? Number.NaN) - offOf(report));
  row(
    "Redfish: host truly off → proven Off, session ended",
    `median ${ms(median(lags))}, max ${ms(Math.max(...lags))}`,
  );
  // The first read is part of the identity check before the order.
  const busiest = Math.max(...reports.map(({ powerReadsAtMs }) => busiestSecond(powerReadsAtMs.slice(1))));
  count("Redfish: most power reads within a second", busiest, 4);
  await benchRequests();
  row("Redfish: a fence above the BMC's own time", ms(median(aboveOurs)));
  await rack.reset();
  const aboveTheirs: number[] = [];
  for (const [index, bmc] of rack.bmcs.entries()) {
    const login = ["--ip", "127.0.0.1", "--ipport", String(bmc.port), "--username", USERNAME, "--password", PASSWORD];
    const args = [...login, "--ssl-insecure", "--systems-uri", new URL(bmc.address).pathname, "--action", "off"];
    const startMs = performance.now();
    const code = await runClient("fence_redfish", args);
    aboveTheirs.push(performance.now() - startMs - offMs(index));
    if (code === undefined) return missing("fence_redfish above the BMC's own time", "fence-agents");
    if (code !== 0) throw new Error(`fence_redfish ended with ${code}`);
  }
  row("fence_redfish above the BMC's own time", ms(median(aboveTheirs)));
  const share = median(aboveOurs) / median(aboveTheirs);
  ratio("Redfish: a fence above the BMC's own time, of that of fence_redfish", share, 0.2);
}

/**
 * Counts the requests of a fence whose host is off at once: identity, power-off, two readings, and the session around
 * them.
 */
async function benchRequests(): Promise<void> {
  await using rack = await startBenchRack([{ name: "host-1", protocol: "redfish+tls", powerOffDelayMs: 0 }]);
  await fence(openBmc(rack, onlyOf(rack.bmcs)), FENCE_TIMEOUT_MS);
  const { requests } = onlyOf(await rack.report());
  count("Redfish: requests of a whole fence, host off at once", requests, 8);
}

function ratio(what: string, value: number, aim: number): void {
  figure({ what, value, unit: "×", aim, fails: true });
}

function count(what: string, value: number, aim: number): void {
  figure({ what, value, unit: "", aim, fails: true });
}

/** Wall and CPU time of one thing that was repeated. */
class Sample {
  readonly #wallMs: number[] = [];
  readonly #cpuMs: number[] = [];

  /** Does `work` `count` times. @param readCpuMs reads the CPU time that counts. */
  async take(count: number, readCpuMs: () => number | Promise<number>, work: () => Promise<unknown>): Promise<void> {
    const cpuStartMs = await readCpuMs();
    for (let run = 0; run < count; run++) {
      const startMs = performance.now();
      await work();
      this.#wallMs.push(performance.now() - startMs);
    }
    this.#cpuMs.push(((await readCpuMs()) - cpuStartMs) / count);
  }

  text(): string {
    return `median ${ms(median(this.#wallMs))}, CPU ${ms(median(this.#cpuMs))}`;
  }

  /** The CPU time as a share of that of `other`. */
  cpuOf(other: Sample): number {
    return median(this.#cpuMs) / median(other.#cpuMs);
  }

  timesOf(other: Sample): string {
    const wall = median(this.#wallMs) / median(other.#wallMs);
    const cpu = median(this.#cpuMs) / median(other.#cpuMs);
    return `${wall.toFixed(1)} times the wall time, ${cpu.toFixed(1)} times the CPU time`;
  }
}

/** The highest number of reads within one second. */
function busiestSecond(atMs: readonly number[]): number {
  return Math.max(...atMs.map((startMs) => atMs.filter((it) => it >= startMs && it < startMs + 1_000).length));
}

function offOf(report: BmcReport): number {
  if (report.offAtMs === undefined) throw new Error(`${report.name} is not off`);
  return report.offAtMs;
}

function onlyOf<T>(items: readonly T[]): T {
  const [item] = items;
  if (item === undefined) throw new Error("the rack is empty");
  return item;
}

function ms(value: number): string {
  return `${value.toFixed(value < 100 ? 2 : 0)} ms`;
}

function missing(what: string, debianPackage: string): void {
  row(what, `not measured: apt-get install --no-install-recommends ${debianPackage}`);
  process.exitCode = 1;
}
