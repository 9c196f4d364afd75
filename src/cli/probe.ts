import { buildCommand } from "@stricli/core";
import type { PowerDriver } from "../bmc/driver.ts";
import type { DeviceConfig } from "../bmc/open-device.ts";
import { openDevice } from "../bmc/open-device.ts";
import type { DeviceReport } from "../bmc/probe-device.ts";
import { probeDevice } from "../bmc/probe-device.ts";
import { OptionError, requireOption } from "../config/option.ts";
import type { ClusterOptions } from "../config/run-options.ts";
import { OUTPUT_OPTION, resolveClusterOptions } from "../config/run-options.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { parseKey } from "../kube/watched.ts";
import { openDevices } from "../remediator/hosts/devices.ts";
import { identityJudge } from "../remediator/hosts/identity.ts";
import { readDeviceConfig } from "./bmc-login.ts";
import { withRuntime } from "./cluster.ts";
import type { CliContext } from "./context.ts";
import { printLine } from "./context.ts";
import { CommandFailure } from "./failures.ts";
import { probeHost } from "./probe-host.ts";
import type { Row } from "./probe-rows.ts";
import { rowsOf } from "./probe-rows.ts";
import type { SubjectFlags } from "./subject.ts";
import { readSubject, SUBJECT_FLAGS, SUBJECT_POSITIONAL } from "./subject.ts";
import { renderTable } from "./table.ts";
import type { TargetFacts } from "./targets.ts";
import { readTarget } from "./targets.ts";

/** Of a BareMetalHost: a probe is the only thing that is done to one by hand. */
const HOST_FLAG = {
  kind: "parsed",
  parse: String,
  optional: true,
  placeholder: "namespace/name",
  brief: "BareMetalHost, in place of an address",
} as const;
type ProbeFlags = SubjectFlags & { readonly host?: string };

/** `ironfence probe`: every check that a fence will need, before the night it is needed. */
export const probeCommand = buildCommand<ProbeFlags, [address?: string], CliContext>({
  func: async function probe(this: CliContext, { host, ...flags }, address) {
    const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
    const rows =
      host === undefined ? await probeSubject(this, flags, address) : await probeNamed(this, flags, host, address);
    const failed = rows.filter(({ result }) => result === "failed");
    if (output === "json") printLine(this, JSON.stringify({ ok: failed.length === 0, checks: rows }));
    else for (const line of renderRows(rows)) printLine(this, line);
    if (failed.length > 0) {
      throw new CommandFailure(`not ready to be fenced: ${failed.map(({ check }) => check).join(", ")}`);
    }
  },
  parameters: {
    positional: SUBJECT_POSITIONAL,
    flags: { host: HOST_FLAG, ...SUBJECT_FLAGS },
    aliases: { n: "namespace", o: "output" },
  },
  docs: {
    brief: "Go through every check that a fence will need, and change nothing",
    fullDescription: [
      "Name, connection, certificate, login, System, identity, power, the orders offered, network boot, and that no session is",
      "left open. A certificate that is not trusted is shown with its SHA-256, to be compared and pinned; no password is sent to",
      "such a BMC. With --target also what concerns the FencingTarget: ambiguity, maintenance, owner, Secrets, whose host it is;",
      "with --host the same of a BareMetalHost.",
      "Exit codes: 0 a fence can go through, 1 it cannot, 2 wrong command line, 3 there is no such target or host.",
    ].join("\n"),
    customUsage: [
      { input: "https://bmc-3.example", brief: "asks for user and password" },
      { input: "ipmi://10.0.0.3 --username fencing --password-file pw -o json", brief: "for scripts" },
      { input: "--target worker-3", brief: "as the agent would reach it" },
      { input: "--host metal3/host-3", brief: "a BareMetalHost, by its own Secret" },
    ],
  },
});

async function probeSubject(context: CliContext, flags: SubjectFlags, address: string | undefined): Promise<Row[]> {
  const subject = readSubject(context, address, flags);
  return "address" in subject
    ? probeAddress(context, subject.address, flags)
    : withRuntime(context, subject.cluster, (runtime) => probeTarget(context, runtime, subject));
}

async function probeNamed(
  context: CliContext,
  flags: SubjectFlags,
  host: string,
  address: string | undefined,
): Promise<Row[]> {
  const { namespace, name } = parseKey(host);
  if (namespace === undefined || address !== undefined || flags.target !== undefined) {
    throw new OptionError("give the ADDRESS of a BMC, --target NAME or --host NAMESPACE/NAME");
  }
  // What a target takes no option for, a BareMetalHost does not either.
  readSubject(context, undefined, { ...flags, target: name });
  const cluster = resolveClusterOptions(flags, context.process.env);
  return withRuntime(context, cluster, (runtime) => probeHost(runtime, { namespace, name }, context.signal));
}

async function probeAddress(context: CliContext, address: string, flags: SubjectFlags): Promise<Row[]> {
  const config = await readDeviceConfig(context, address, flags);
  return rowsOf(undefined, await probeDevice(config, { clock: context.clock, openDevice }, context.signal));
}

async function probeTarget(
  context: CliContext,
  runtime: KubeRuntime,
  { target: targetName, cluster: { namespace } }: { target: string; cluster: ClusterOptions },
): Promise<Row[]> {
  const { signal, clock } = context;
  const facts = await readTarget(runtime, namespace, { targetName }, signal);
  const rows = targetRows(facts);
  const configs = new Map<PowerDriver, DeviceConfig>();
  const recording: typeof openDevice = (config, deps) => {
    const driver = openDevice(config, deps);
    configs.set(driver, config);
    return driver;
  };
  const devices = await openDevices({ runtime, openDevice: recording }, facts.target, signal);
  await Promise.all(devices.map(({ driver }) => driver.close()));
  const levels = new Map<number, (DeviceReport | undefined)[]>();
  for (const { address, level, driver, failure } of devices) {
    const config = configs.get(driver);
    const report = config === undefined ? undefined : await probeDevice(config, { clock, openDevice }, signal);
    levels.set(level, [...(levels.get(level) ?? []), report]);
    if (failure !== undefined) {
      rows.push({ device: address, check: "credentials", result: "failed", detail: failure.message });
    }
    if (report !== undefined) rows.push(...rowsOf(address, report));
  }
  for (const [level, reports] of [...levels].toSorted(([a], [b]) => a - b)) {
    rows.push(identityRow(facts, level, reports));
  }
  return rows;
}

function targetRows({ target, node, obstacles, paused }: TargetFacts): Row[] {
  const { nodeName, clusterRef } = target.spec;
  const node_: Row =
    clusterRef !== undefined
      ? {
          check: "node",
          result: "ok",
          detail: `${nodeName} of cluster ${clusterRef.namespace}/${clusterRef.name}, not looked at`,
        }
      : node === undefined
        ? { check: "node", result: "warning", detail: `there is no node ${nodeName}` }
        : { check: "node", result: "ok", detail: nodeName };
  const target_: Row[] =
    obstacles.length === 0
      ? [{ check: "target", result: "ok", detail: "no other claims the host, nobody owns it now" }]
      : obstacles.map((detail) => ({ check: "target", result: "failed", detail }));
  const switch_: Row[] = paused === undefined ? [] : [{ check: "stop switch", result: "warning", detail: paused }];
  return [node_, ...target_, ...switch_];
}

/** Whether the devices of one level power the host that the target means. */
function identityRow(
  { target, node }: TargetFacts,
  level: number,
  reports: readonly (DeviceReport | undefined)[],
): Row {
  const check = `identity of level ${level}`;
  const answers = reports.flatMap((report) => report?.identity ?? []);
  if (answers.length < reports.length) {
    return { check, result: "skipped", detail: "not every device of the level has answered" };
  }
  const verdict = identityJudge(target, node?.status.nodeInfo?.systemUUID)(answers);
  return { check, result: verdict.verified ? "ok" : "failed", detail: verdict.message };
}

function renderRows(rows: readonly Row[]): string[] {
  const lines: string[] = [];
  let device: string | undefined;
  let section: Row[] = [];
  const flush = (): void => {
    if (section.length === 0) return;
    if (device !== undefined) lines.push(device);
    lines.push(
      ...renderTable(
        ["CHECK", "RESULT", "DETAIL"],
        section.map(({ check, result, detail }) => [check, result, detail]),
      ),
      "",
    );
    section = [];
  };
  for (const row of rows) {
    if (row.device !== device) flush();
    device = row.device;
    section.push(row);
  }
  flush();
  return lines.slice(0, -1);
}
