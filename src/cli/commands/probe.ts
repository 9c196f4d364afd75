import { buildCommand } from "@stricli/core";
import type { PowerDriver } from "../../bmc/interface/driver.ts";
import type { DeviceConfig, OpenDevice } from "../../bmc/interface/device-config.ts";
import type { DeviceReport } from "../../bmc/devices/probe-device.ts";
import { probeDevice } from "../../bmc/devices/probe-device.ts";
import { OptionError, requireOption } from "../../config/option.ts";
import type { ClusterOptions } from "../../config/cluster-options.ts";
import { OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { parseKey } from "../../kube/watched.ts";
import { openDevices } from "../../remediator/hosts/fencing-target/devices.ts";
import { identityJudge } from "../../remediator/hosts/model/identity.ts";
import { readDeviceConfig } from "../hosts/bmc-login.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { CommandFailure } from "../errors/failures.ts";
import { probeHost } from "../hosts/probe-host.ts";
import type { ProbeRow } from "../hosts/probe-rows.ts";
import { rowsOf } from "../hosts/probe-rows.ts";
import type { SelectionFlags } from "../hosts/host-selection.ts";
import { selectHost, SELECTION_FLAGS, SELECTION_POSITIONAL } from "../hosts/host-selection.ts";
import { renderTable } from "../terminal/table.ts";
import type { TargetContext } from "../hosts/targets.ts";
import { readTarget } from "../hosts/targets.ts";

/** The flag for a BareMetalHost. Only `probe` has it: no other command acts on one by hand. */
const HOST_FLAG = {
  kind: "parsed",
  parse: String,
  optional: true,
  placeholder: "namespace/name",
  brief: "BareMetalHost, instead of an address",
} as const;
type ProbeFlags = SelectionFlags & { readonly host?: string };

/** `ironfence probe`: checks in advance everything that a fence needs. */
export const probeCommand = buildCommand<ProbeFlags, [address?: string], CliContext>({
  func: async function probe(this: CliContext, { host, ...flags }, address) {
    const output = requireOption(OUTPUT_OPTION, flags, this.process.env);
    const rows =
      host === undefined ? await probeSelection(this, flags, address) : await probeNamed(this, flags, host, address);
    const failed = rows.filter(({ result }) => result === "failed");
    if (output === "json") printLine(this, JSON.stringify({ ok: failed.length === 0, checks: rows }));
    else for (const line of renderRows(rows)) printLine(this, line);
    if (failed.length > 0) {
      throw new CommandFailure(
        "ChecksFailed",
        `the host is not ready to be fenced, since these checks failed: ${failed.map(({ check }) => check).join(", ")}`,
      );
    }
  },
  parameters: {
    positional: SELECTION_POSITIONAL,
    flags: { host: HOST_FLAG, ...SELECTION_FLAGS },
    aliases: { n: "namespace", o: "output" },
  },
  docs: {
    brief: "Check everything that a fence of one host needs, and change nothing",
    fullDescription: [
      "Checks name, connection, certificate, login, System, identity, power, the orders that the BMC offers, network boot, and",
      "that no session is left open. If a certificate is not trusted, its SHA-256 is shown so that you can compare and pin it, and",
      "no password is sent. With --target, also checks the FencingTarget: other claims, maintenance, owner, Secrets and identity.",
      "With --host, does the same for a BareMetalHost.",
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

async function probeSelection(
  context: CliContext,
  flags: SelectionFlags,
  address: string | undefined,
): Promise<ProbeRow[]> {
  const selection = selectHost(context, address, flags);
  return "address" in selection
    ? probeAddress(context, selection.address, flags)
    : withRuntime(context, selection.cluster, (runtime) => probeTarget(context, runtime, selection));
}

async function probeNamed(
  context: CliContext,
  flags: SelectionFlags,
  host: string,
  address: string | undefined,
): Promise<ProbeRow[]> {
  const { namespace, name } = parseKey(host);
  if (namespace === undefined || address !== undefined || flags.target !== undefined) {
    throw new OptionError("give one of the ADDRESS of a BMC, --target NAME and --host NAMESPACE/NAME");
  }
  // Like a target, a BareMetalHost has its credentials in a Secret, so the options for credentials are refused.
  selectHost(context, undefined, { ...flags, target: name });
  const cluster = resolveClusterOptions(flags, context.process.env);
  const { openDevice, signal } = context;
  return withRuntime(context, cluster, (runtime) => probeHost({ runtime, openDevice }, { namespace, name }, signal));
}

async function probeAddress(context: CliContext, address: string, flags: SelectionFlags): Promise<ProbeRow[]> {
  const config = await readDeviceConfig(context, address, flags);
  const { clock, openDevice, signal } = context;
  return rowsOf(undefined, await probeDevice(config, { clock, openDevice }, signal));
}

async function probeTarget(
  context: CliContext,
  runtime: KubeRuntime,
  { target: targetName, cluster: { namespace } }: { target: string; cluster: ClusterOptions },
): Promise<ProbeRow[]> {
  const { signal, clock, openDevice } = context;
  const facts = await readTarget({ runtime, openDevice }, namespace, { targetName }, signal);
  const rows = targetRows(facts);
  const configs = new Map<PowerDriver, DeviceConfig>();
  const recording: OpenDevice = (config, deps) => {
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

function targetRows({ target, node, obstacles, paused }: TargetContext): ProbeRow[] {
  const { nodeName, clusterRef } = target.spec;
  const node_: ProbeRow =
    clusterRef !== undefined
      ? {
          check: "node",
          result: "ok",
          detail: `${nodeName} of cluster ${clusterRef.namespace}/${clusterRef.name}, which is not read`,
        }
      : node === undefined
        ? { check: "node", result: "warning", detail: `there is no node ${nodeName}` }
        : { check: "node", result: "ok", detail: nodeName };
  const target_: ProbeRow[] =
    obstacles.length === 0
      ? [{ check: "target", result: "ok", detail: "no other target claims the host, and no remediation owns it" }]
      : obstacles.map((detail) => ({ check: "target", result: "failed", detail }));
  const switch_: ProbeRow[] = paused === undefined ? [] : [{ check: "stop switch", result: "warning", detail: paused }];
  return [node_, ...target_, ...switch_];
}

/** Whether the devices of one level power the host that the target means. */
function identityRow(
  { target, node }: TargetContext,
  level: number,
  reports: readonly (DeviceReport | undefined)[],
): ProbeRow {
  const check = `identity of level ${level}`;
  const answers = reports.flatMap((report) => report?.identity ?? []);
  if (answers.length < reports.length) {
    return { check, result: "skipped", detail: "not every device of the level has answered" };
  }
  const compared = identityJudge(target, node?.status.nodeInfo?.systemUUID)(answers);
  return { check, result: compared.verified ? "ok" : "failed", detail: compared.message };
}

function renderRows(rows: readonly ProbeRow[]): string[] {
  const lines: string[] = [];
  let device: string | undefined;
  let section: ProbeRow[] = [];
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
