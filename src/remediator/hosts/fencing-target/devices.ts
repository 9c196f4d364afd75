import type { Device, FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { BmcCredentials } from "../../../bmc/interface/credentials.ts";
import { isOutletAddress } from "../../../bmc/interface/address.ts";
import type {
  BootOverride,
  DeviceTimeouts,
  OutletIdentity,
  PowerDriver,
  PowerReading,
} from "../../../bmc/interface/driver.ts";
import type { HostIdentity } from "../../../bmc/identity/host-identity.ts";
import { DEFAULT_DEVICE_TIMEOUTS } from "../../../bmc/interface/driver.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";
import type { OpenDevice } from "../../../bmc/interface/device-config.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { readSecret } from "../../../kube/objects/secret-reader.ts";
import type { StoredSecret } from "../../../kube/objects/secret-reader.ts";
import { parseDurationMs } from "../../../runtime/duration.ts";
import { TargetError } from "../model/host.ts";
import { compareIdentity, expectedIdentity } from "../model/identity.ts";
import type { ReadSecret } from "./device-secrets.ts";
import { readCredentials, readIpmi, readSnmp, readTls } from "./device-secrets.ts";

/**
 * One device of a target with its driver. If its configuration cannot be used, `failure` says why, and every call fails
 * with it.
 */
export interface OpenedDevice {
  address: string;
  level: number;
  driver: PowerDriver;
  credentials?: BmcCredentials;
  failure?: TargetError;
  /** Names and versions of the Secrets that were read for it. */
  secrets: readonly string[];
}

export interface OpenDevicesDeps {
  runtime: KubeRuntime;
  openDevice: OpenDevice;
  /** Ends logins in progress (`DeviceDeps`). */
  abandonLogin?: AbortSignal;
}

/**
 * Creates the drivers of all devices of a target, with credentials and certificates that are read live from Secrets in
 * the namespace of the target. If one device cannot be used as configured, the others still are. Nothing is sent to a
 * device.
 *
 * @throws KubeError if a Secret exists, or may exist, and cannot be read.
 */
export async function openDevices(
  deps: OpenDevicesDeps,
  target: FencingTarget,
  signal: AbortSignal,
): Promise<OpenedDevice[]> {
  const { namespace } = target.metadata;
  const reads = new Map<string, Promise<StoredSecret | undefined>>();
  const readOnce = (name: string): Promise<StoredSecret | undefined> => {
    const key = namespace === undefined ? { name } : { namespace, name };
    const read = reads.get(name) ?? readSecret(deps.runtime.client, key, signal);
    reads.set(name, read);
    return read;
  };
  return Promise.all(target.spec.devices.map((device, index) => openOne(deps, target, device, index, readOnce)));
}

async function openOne(
  deps: OpenDevicesDeps,
  target: FencingTarget,
  device: Device,
  index: number,
  readOnce: ReadSecret,
): Promise<OpenedDevice> {
  const { address, level } = device;
  const secrets: string[] = [];
  const readSecret: ReadSecret = async (name) => {
    const secret = await readOnce(name);
    secrets.push(`${name} ${secret?.version ?? ""}`);
    return secret;
  };
  const where = `spec.devices[${index}] of FencingTarget ${target.metadata.namespace}/${target.metadata.name}`;
  try {
    const credentials = await readCredentials(target, device, where, readSecret);
    const tls = await readTls(target, device, where, readSecret);
    const expected = expectedIdentity(target);
    const config = {
      address,
      ...credentials,
      tls,
      timeouts: timeoutsOf(device),
      ...(device.redfish?.powerChassis !== undefined && { redfish: { powerChassis: device.redfish.powerChassis } }),
      ipmi: await readIpmi(target, device, where, readSecret),
      ...(isOutletAddress(address) && { snmp: await readSnmp(target, device, where, readSecret) }),
      ...(expected !== undefined && {
        isHost: (identity: HostIdentity): boolean => compareIdentity(expected, identity) === "match",
      }),
    };
    return { address, level, credentials, driver: openDriver(deps, config, where), secrets };
  } catch (error) {
    if (!(error instanceof TargetError)) throw error;
    return { address, level, failure: error, driver: unusableDriver(address, error), secrets };
  }
}

function openDriver(deps: OpenDevicesDeps, config: Parameters<OpenDevice>[0], where: string): PowerDriver {
  const { clock, logger } = deps.runtime;
  const { abandonLogin } = deps;
  try {
    return deps.openDevice(config, { clock, logger, ...(abandonLogin && { abandonLogin }) });
  } catch (error) {
    if (!(error instanceof BmcError)) throw error;
    const reason = error.code === "TlsUntrusted" || error.code === "AuthFailed" ? "SecretInvalid" : "AddressInvalid";
    throw new TargetError(reason, `${where} cannot be used: ${error.message}`, { cause: error });
  }
}

/** The longest deadline of a device. With a longer one, a fence would wait for a BMC that does not come back. */
const DEVICE_TIMEOUT_MAX_MS = 120_000;

function timeoutsOf(device: Device): DeviceTimeouts {
  const bounded = (text: string | undefined, defaultMs: number): number => {
    const timeoutMs = text === undefined ? undefined : parseDurationMs(text);
    return timeoutMs === undefined || timeoutMs <= 0 ? defaultMs : Math.min(timeoutMs, DEVICE_TIMEOUT_MAX_MS);
  };
  return {
    connectTimeoutMs: bounded(device.timeouts?.connect, DEFAULT_DEVICE_TIMEOUTS.connectTimeoutMs),
    callTimeoutMs: bounded(device.timeouts?.call, DEFAULT_DEVICE_TIMEOUTS.callTimeoutMs),
  };
}

/** Replaces a device that cannot be opened, so that its level fails and the next level is tried. */
function unusableDriver(address: string, failure: TargetError): PowerDriver {
  const refuse = (): Promise<never> => Promise.reject(new BmcError("Unsupported", failure.message, { cause: failure }));
  return {
    address,
    ...(isOutletAddress(address) && { identifyOutlet: (): Promise<OutletIdentity> => refuse() }),
    identify: (): Promise<HostIdentity> => refuse(),
    readPower: (): Promise<PowerReading> => refuse(),
    forceOff: (): Promise<void> => refuse(),
    on: (): Promise<void> => refuse(),
    setBootOverride: (): Promise<void> => refuse(),
    readBootOverride: (): Promise<BootOverride> => refuse(),
    close: () => Promise.resolve(),
  };
}
