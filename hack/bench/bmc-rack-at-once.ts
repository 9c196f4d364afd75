import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { BmcAt, RackHost } from "./bmc-rack.ts";
import { startBenchRack } from "./bmc-rack.ts";
import { AGENT_NODE_FLAGS } from "./node-flags.ts";
import { readUsage } from "./process-usage.ts";
import { figure, median, row, seconds } from "./report.ts";

const HOSTS = 500;
/** Hosts that are fenced first and not counted, one for each protocol: they pay what the libraries cost once. */
const WARM_UP_HOSTS = 2;
const OFF_MS_MIN = 1_000;
const OFF_MS_MAX = 8_000;

/** What the client process receives, and what it reports at its end. */
export interface AtOnceTask {
  bmcs: readonly BmcAt[];
  warmUp: readonly BmcAt[];
  sha256Fingerprint: string | undefined;
}
export interface AtOnceResult {
  /** Time from the first order until the last proof is there and all sessions have ended. */
  totalMs: number;
  /** CPU time that the client used in that time. */
  cpuMs: number;
  /** Resident memory before the fences, and its peak, in bytes. */
  rssBeforeBytes: number;
  rssPeakBytes: number;
  /** Wall-clock time of the proof by host, milliseconds since the epoch. */
  provenAtMs: Record<string, number>;
}

/** Fences a whole rack at once from a separate process, half of it over Redfish with TLS and half over IPMI. */
export async function benchRackAtOnce(): Promise<void> {
  const hosts = Array.from({ length: HOSTS + WARM_UP_HOSTS }, (_, index): RackHost => ({
    name: `host-${index}`,
    protocol: index % 2 === 0 ? "redfish+tls" : "ipmi",
    powerOffDelayMs: OFF_MS_MIN + ((OFF_MS_MAX - OFF_MS_MIN) * index) / (HOSTS - 1),
  }));
  await using rack = await startBenchRack(hosts);
  const client = fork(fileURLToPath(new URL("bmc-client-process.ts", import.meta.url)), {
    execArgv: AGENT_NODE_FLAGS,
  });
  const ended = once(client, "exit");
  const { bmcs, sha256Fingerprint } = rack;
  const task: AtOnceTask = { bmcs: bmcs.slice(0, HOSTS), warmUp: bmcs.slice(HOSTS), sha256Fingerprint };
  const message = once(client, "message").then(([result]) => result as AtOnceResult);
  const rackBefore = await readUsage(rack.pid);
  client.send(task);
  const result = await Promise.race([message, ended.then(() => undefined)]);
  if (result === undefined) throw new Error("the client's process has failed");
  const rackCpuMs = (await readUsage(rack.pid)).cpuMs - rackBefore.cpuMs;
  await ended;
  const reports = (await rack.report()).slice(0, HOSTS);
  const lags = reports.map(({ name, offAtMs = Number.NaN }) => (result.provenAtMs[name] ?? Number.NaN) - offAtMs);
  const grownKib = (result.rssPeakBytes - result.rssBeforeBytes) / 1_024;
  const what = `${HOSTS} hosts at once, half Redfish with TLS, half IPMI`;
  row(`${what}: total`, `${result.totalMs.toFixed(0)} ms`);
  // The slowest host takes the same time on every machine, so this ratio depends on the machine as much as a time does.
  // docs/evidence/benchmarks.md says what the rest of the time is spent on.
  const share = result.totalMs / OFF_MS_MAX;
  figure({ what: `${what}: total, of the slowest host`, value: share, unit: "×", aim: 1.3, fails: false });
  row(
    "… host truly off → proven Off, session ended",
    `median ${median(lags).toFixed(0)} ms, max ${Math.max(...lags).toFixed(0)} ms`,
  );
  row("… CPU: ours; the simulated BMCs'", `${seconds(result.cpuMs)} s; ${seconds(rackCpuMs)} s`);
  row("… RSS before it", `${(result.rssBeforeBytes / 2 ** 20).toFixed(0)} MiB`);
  figure({ what: `${what}: RSS growth a host`, value: grownKib / HOSTS, unit: "KiB", aim: 40, fails: false });
  const logins = Math.max(...reports.map(({ logins }) => logins));
  figure({ what: `${what}: most sessions of one BMC`, value: logins, unit: "", aim: 1, fails: true });
  const left = Math.max(...reports.map(({ sessions }) => sessions));
  figure({ what: `${what}: sessions left open`, value: left, unit: "", aim: 0, fails: true });
}
