import type { Node } from "../../../api/kubernetes/core.ts";
import type { Device, FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { sharedText } from "../../../runtime/text/shared-text.ts";
import { isReady } from "../../../nodes/ready.ts";
import type { OpenDevicesDeps, OpenedDevice } from "../../hosts/fencing-target/devices.ts";
import { openDevices } from "../../hosts/fencing-target/devices.ts";
import { sameCredentials } from "../../../bmc/interface/credentials.ts";
import type { BmcCredentials } from "../../../bmc/interface/credentials.ts";
import { compareIdentity, expectedIdentity, meaningfulUuid } from "../../hosts/model/identity.ts";
import { hasFreshLease } from "./node-alive.ts";
import { proveOff } from "./prove-off.ts";
import type { DeviceFailure, DeviceProbe, ProbeResult, RefusedLogin } from "../schedule/probe-result.ts";

/** The deadline for the probe of one device, whatever deadlines its spec has. */
const DEVICE_PROBE_TIMEOUT_MS = 120_000;

/**
 * Reads the identity and the power state of every device of a target. It sends no orders.
 *
 * @param options.nodeRuntime of the cluster that holds the node.
 * @param options.refused logins that are not tried again: their devices count as failed and are not contacted.
 * @param options.toProve whether a host that shows Off is read again, to prove it.
 * @throws KubeError if the API server cannot be reached; the reason of `signal` on abort. A failure of a device is a
 * result.
 */
export async function probeTarget(
  deps: OpenDevicesDeps,
  target: FencingTarget,
  node: Node | undefined,
  { nodeRuntime, refused, toProve }: { nodeRuntime: KubeRuntime; refused: readonly RefusedLogin[]; toProve: boolean },
  signal: AbortSignal,
): Promise<ProbeResult> {
  const opened = await openDevices(deps, target, signal).catch((error: unknown) => {
    if (isKubeError(error, "Forbidden")) return error;
    throw error;
  });
  if (opened instanceof Error) {
    const message = `${opened.message}: give ironfence's service account permission to get Secrets in its own namespace`;
    const unreadable = (device: Device, index: number): DeviceProbe => {
      const { address, level } = device;
      return { address, level, index, ok: false, reason: "SecretUnreadable", message };
    };
    return { devices: target.spec.devices.map(unreadable), pin: undefined, refused: [], offProof: undefined };
  }
  try {
    const devices = await Promise.all(
      opened.map((device, index) => probeDevice(deps.runtime, device, index, refused, signal)),
    );
    return {
      devices,
      pin: await findPin(nodeRuntime, target, node, devices, signal),
      refused: devices.flatMap((probe) => {
        const credentials = opened[probe.index]?.credentials;
        if (probe.ok || probe.reason !== "AuthenticationFailed" || credentials === undefined) return [];
        return [{ address: probe.address, credentials }];
      }),
      offProof: toProve ? await proveOff(nodeRuntime, target, node, opened, devices, signal) : undefined,
    };
  } finally {
    await Promise.all(opened.map((device) => device.driver.close()));
  }
}

async function probeDevice(
  runtime: KubeRuntime,
  device: OpenedDevice,
  index: number,
  refused: readonly RefusedLogin[],
  signal: AbortSignal,
): Promise<DeviceProbe> {
  const probe = await askDevice(runtime, device, index, refused, signal);
  // Even a device whose certificate is not trusted has shown it.
  const { certificateUntilMs } = device.driver;
  return certificateUntilMs === undefined ? probe : { ...probe, certificateUntilMs };
}

async function askDevice(
  runtime: KubeRuntime,
  device: OpenedDevice,
  index: number,
  refused: readonly RefusedLogin[],
  signal: AbortSignal,
): Promise<DeviceProbe> {
  const { address, level, driver, credentials } = device;
  // The status of the target gets the same message, so both share one string.
  const failed = (reason: DeviceFailure, message: string): DeviceProbe => {
    return { address, level, index, ok: false, reason, message: sharedText(message) };
  };
  if (device.failure !== undefined) return failed(device.failure.reason, device.failure.message);
  if (credentials !== undefined && refused.some((login) => isSameLogin(login, address, credentials))) {
    return failed("AuthenticationFailed", refusedMessage(address, credentials));
  }
  try {
    return await withDeadline(
      runtime.clock,
      `probe of ${address}`,
      DEVICE_PROBE_TIMEOUT_MS,
      signal,
      async (signal): Promise<DeviceProbe> => {
        const identity = await driver.identify(signal);
        const reading = await driver.readPower(signal);
        const obstacle = await driver.findOffObstacle?.(signal);
        const outlet = await driver.identifyOutlet?.(signal);
        const { lastReset } = driver;
        return {
          address,
          level,
          index,
          ok: true,
          identity,
          reading,
          ...(obstacle !== undefined && { obstacle }),
          ...(lastReset !== undefined && { lastReset }),
          ...(outlet !== undefined && { outlet }),
        };
      },
    );
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof DeadlineError) return failed("Timeout", error.message);
    if (!(error instanceof BmcError) || error.code === "Aborted") throw error;
    if (error.code === "AuthFailed") return failed("AuthenticationFailed", refusedMessage(address, credentials));
    return failed(error.code, error.message);
  }
}

// Constant, so that a login that is skipped has the same message as the refusal.
function refusedMessage(address: string, credentials: BmcCredentials | undefined): string {
  return `${address} refused ${credentials?.certificate === undefined ? "user or password" : "the client certificate or the key"}`;
}

function isSameLogin(login: RefusedLogin, address: string, credentials: BmcCredentials): boolean {
  return login.address === address && sameCredentials(login.credentials, credentials);
}

/**
 * The system UUID to pin: that of a node that is certainly alive, if a device reports the same UUID and no device
 * reports another one. A kubelet chooses what it reports about its node, so its report alone would let it claim the
 * host of another node.
 */
async function findPin(
  runtime: KubeRuntime,
  target: FencingTarget,
  node: Node | undefined,
  devices: readonly DeviceProbe[],
  signal: AbortSignal,
): Promise<ProbeResult["pin"]> {
  const expected = expectedIdentity(target);
  if (expected?.source === "spec" || node === undefined || !isReady(node)) return undefined;
  const systemUUID = meaningfulUuid(node.status.nodeInfo?.systemUUID);
  if (systemUUID === undefined) return undefined;
  if (expected !== undefined && compareIdentity(expected, { systemUUID }) === "match") return undefined;
  const comparisons = devices.map((probe) => (probe.ok ? compareIdentity({ systemUUID }, probe.identity) : "unknown"));
  if (!comparisons.includes("match") || comparisons.includes("mismatch")) return undefined;
  const { nodeName, clusterRef } = target.spec;
  if (!(await hasFreshLease(runtime, nodeName, signal))) return undefined;
  return { nodeName, systemUUID, ...(clusterRef !== undefined && { clusterRef }) };
}
