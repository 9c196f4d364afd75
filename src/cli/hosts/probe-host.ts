import type { BareMetalHost } from "../../api/metal3/metal3.ts";
import { readBareMetalHost } from "../../api/metal3/metal3.ts";
import type { DeviceConfig, OpenDevice } from "../../bmc/interface/device-config.ts";
import { probeDevice } from "../../bmc/devices/probe-device.ts";
import type { DeviceReport } from "../../bmc/devices/probe-device.ts";
import type { ObjectKey } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { openHostDevice } from "../../remediator/hosts/bare-metal-host/power/host-device.ts";
import { BARE_METAL_HOSTS } from "../../remediator/hosts/bare-metal-host/store/host-store.ts";
import { storedOwner } from "../../remediator/hosts/bare-metal-host/store/host-annotations.ts";
import { judgeHost } from "../../remediator/hosts/bare-metal-host/power/judge-host.ts";
import { hostText, maintenanceOf, powerOffRefusal } from "../../remediator/hosts/bare-metal-host/store/power-path.ts";
import { TargetError } from "../../remediator/hosts/model/host.ts";
import { CommandRefusal } from "../errors/failures.ts";
import type { ProbeRow } from "./probe-rows.ts";
import { rowsOf } from "./probe-rows.ts";

/** Checks everything that a fence of a BareMetalHost needs. @throws CommandRefusal if there is no such host. */
export async function probeHost(
  deps: { runtime: KubeRuntime; openDevice: OpenDevice },
  key: ObjectKey,
  signal: AbortSignal,
): Promise<ProbeRow[]> {
  const { runtime, openDevice } = deps;
  const host = await readHost(runtime, key, signal);
  const rows = hostRows(host);
  const config = await configOf(deps, host, signal);
  if (config instanceof TargetError) {
    return [...rows, { check: "credentials", result: "failed", detail: config.message }];
  }
  const report = await probeDevice(config, { clock: runtime.clock, openDevice }, signal);
  return [...rows, ...rowsOf(config.address, report), identityRow(host, report)];
}

async function readHost(runtime: KubeRuntime, key: ObjectKey, signal: AbortSignal): Promise<BareMetalHost> {
  try {
    return readBareMetalHost(await runtime.client.get<KubeObject>(BARE_METAL_HOSTS, key, signal));
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
    throw new CommandRefusal(
      "ObjectNotFound",
      `there is no BareMetalHost ${key.namespace ?? ""}/${key.name}: kubectl get bmh -A lists them`,
    );
  }
}

function hostRows(host: BareMetalHost): ProbeRow[] {
  const owner = storedOwner(host);
  const obstacles = [
    powerOffRefusal(host)?.message,
    maintenanceOf(host),
    owner &&
      `${owner.kind} ${owner.namespace}/${owner.name} owns ${hostText(host)}: wait for it, or delete it, which undoes it`,
  ].filter((message) => message !== undefined);
  if (obstacles.length > 0) return obstacles.map((detail) => ({ check: "host", result: "failed", detail }));
  return [{ check: "host", result: "ok", detail: `${hostText(host)} may be fenced, and no remediation owns it` }];
}

/** The address and credentials of the host's BMC, or why it cannot be reached. */
async function configOf(
  { runtime, openDevice }: { runtime: KubeRuntime; openDevice: OpenDevice },
  host: BareMetalHost,
  signal: AbortSignal,
): Promise<DeviceConfig | TargetError> {
  const configs: DeviceConfig[] = [];
  const recording: OpenDevice = (config, deps) => {
    configs.push(config);
    return openDevice(config, deps);
  };
  try {
    const driver = await openHostDevice({ runtime, openDevice: recording }, host, signal);
    await driver.close();
  } catch (error) {
    if (error instanceof TargetError) return error;
    throw error;
  }
  const [config] = configs;
  if (config === undefined) throw new Error(`${hostText(host)} was opened without a device`);
  return config;
}

function identityRow(host: BareMetalHost, { identity }: DeviceReport): ProbeRow {
  const check = "identity of the host";
  if (identity === undefined) return { check, result: "skipped", detail: "its BMC has not reported an identity" };
  const compared = judgeHost(host, undefined, identity, undefined);
  if (compared.verified) return { check, result: "ok", detail: compared.message };
  if (compared.reason === "Mismatch") return { check, result: "failed", detail: compared.message };
  return { check, result: "warning", detail: "no serial number to compare: a fence compares the node's system UUID" };
}
