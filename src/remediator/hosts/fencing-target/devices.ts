import { X509Certificate } from "node:crypto";
import { ALLOWED_ADDRESSES } from "../../../api/names/annotations.ts";
import type { Device, FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { BmcCredentials } from "../../../bmc/interface/credentials.ts";
import type { BootOverride, DeviceTimeouts, PowerDriver, PowerReading } from "../../../bmc/interface/driver.ts";
import type { HostIdentity } from "../../../bmc/identity/host-identity.ts";
import { DEFAULT_DEVICE_TIMEOUTS } from "../../../bmc/interface/driver.ts";
import { BmcError } from "../../../bmc/interface/errors.ts";
import type { DeviceConfig, DeviceTls, OpenDevice } from "../../../bmc/interface/device-config.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { readSecret } from "../../../kube/objects/secret-reader.ts";
import type { StoredSecret } from "../../../kube/objects/secret-reader.ts";
import { parseDurationMs } from "../../../runtime/duration.ts";
import type { Secret } from "../../../runtime/secret.ts";
import { isAllowed, originText } from "../model/allowed-addresses.ts";
import { TargetError } from "../model/host.ts";
import { compareIdentity, expectedIdentity } from "../model/identity.ts";
import { wasSentByFirstVersion } from "./sent-before.ts";

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
}

export interface OpenDevicesDeps {
  runtime: KubeRuntime;
  openDevice: OpenDevice;
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

/** Reads a Secret of the namespace of the target, each once. */
type ReadSecret = (name: string) => Promise<StoredSecret | undefined>;

async function openOne(
  deps: OpenDevicesDeps,
  target: FencingTarget,
  device: Device,
  index: number,
  readSecret: ReadSecret,
): Promise<OpenedDevice> {
  const { address, level } = device;
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
      ...(expected !== undefined && {
        isHost: (identity: HostIdentity): boolean => compareIdentity(expected, identity) === "match",
      }),
    };
    return { address, level, credentials, driver: openDriver(deps, config, where) };
  } catch (error) {
    if (!(error instanceof TargetError)) throw error;
    return { address, level, failure: error, driver: unusableDriver(address, error) };
  }
}

function openDriver(deps: OpenDevicesDeps, config: Parameters<OpenDevice>[0], where: string): PowerDriver {
  const { clock, logger } = deps.runtime;
  try {
    return deps.openDevice(config, { clock, logger });
  } catch (error) {
    if (!(error instanceof BmcError)) throw error;
    const reason = error.code === "TlsUntrusted" ? "SecretInvalid" : "AddressInvalid";
    throw new TargetError(reason, `${where} cannot be used: ${error.message}`, { cause: error });
  }
}

async function readCredentials(
  target: FencingTarget,
  device: Device,
  where: string,
  readSecret: ReadSecret,
): Promise<BmcCredentials> {
  const { name } = device.credentialsSecretRef;
  refusePlainHttp(device, where);
  const secret = await requireSecret(target, name, "keys username and password", where, readSecret);
  const origin = originText(device.address);
  const allowed = secret.annotations[ALLOWED_ADDRESSES];
  const isFree = allowed === undefined ? wasSentByFirstVersion(target) : isAllowed(allowed, device.address);
  if (origin !== undefined && !isFree) {
    const message = `${secretText(target, name)} may not be sent to the address of ${where}: if the address is correct, add ${origin} to the annotation ${ALLOWED_ADDRESSES}`;
    throw new TargetError("AddressNotAllowed", message);
  }
  const username = readKey(target, secret, name, "username", where);
  const password = readKey(target, secret, name, "password", where);
  return { username: username.reveal(), password };
}

/** A password that is sent over plain HTTP can be read on the way, so a separate field has to allow it. */
function refusePlainHttp({ address, allowPlainHTTP }: Device, where: string): void {
  if (allowPlainHTTP || originText(address)?.startsWith("http:") !== true) return;
  const message = `${where} has a plain HTTP address, over which the password can be read: use HTTPS, or set allowPlainHTTP`;
  throw new TargetError("AddressNotAllowed", message);
}

async function readTls(
  target: FencingTarget,
  device: Device,
  where: string,
  readSecret: ReadSecret,
): Promise<DeviceTls> {
  const { caSecretRef, sha256Fingerprint, insecureSkipVerify = false, minVersion } = device.tls ?? {};
  const tls: DeviceTls = {
    insecureSkipVerify,
    ...(sha256Fingerprint !== undefined && { sha256Fingerprint }),
    ...(minVersion !== undefined && { minVersion }),
  };
  if (caSecretRef === undefined) return tls;
  const { name, key } = caSecretRef;
  const secret = await requireSecret(target, name, `key ${key} and a PEM bundle`, where, readSecret);
  const ca = readKey(target, secret, name, key, where).reveal();
  if (!isPemCertificate(ca)) {
    const message = `${secretText(target, name)}, tls.caSecretRef of ${where}, holds no PEM certificate in its key ${key}: store the bundle that signed the certificate of the BMC there`;
    throw new TargetError("SecretInvalid", message);
  }
  return { ...tls, ca };
}

async function requireSecret(
  target: FencingTarget,
  name: string,
  content: string,
  where: string,
  readSecret: ReadSecret,
): Promise<StoredSecret> {
  const secret = await readSecret(name);
  if (secret !== undefined) return secret;
  const message = `${secretText(target, name)} of ${where} does not exist: create it in that namespace with ${content}`;
  throw new TargetError("SecretNotFound", message);
}

function readKey(target: FencingTarget, secret: StoredSecret, name: string, key: string, where: string): Secret {
  const value = secret.value(key);
  if (value !== undefined) return value;
  const message = `${secretText(target, name)} of ${where} has ${secret.has(key) ? "an empty" : "no"} key ${key}: add it`;
  throw new TargetError("SecretInvalid", message);
}

function secretText(target: FencingTarget, name: string): string {
  return `Secret ${target.metadata.namespace}/${name}`;
}

function isPemCertificate(text: string): boolean {
  try {
    return text.includes("-----BEGIN CERTIFICATE-----") && new X509Certificate(text).raw.length > 0;
  } catch {
    return false;
  }
}

async function readIpmi(
  target: FencingTarget,
  device: Device,
  where: string,
  readSecret: ReadSecret,
): Promise<NonNullable<DeviceConfig["ipmi"]>> {
  const { cipherSuites, bootMode } = device.ipmi ?? {};
  const { name } = device.credentialsSecretRef;
  const secret = await readSecret(name);
  return {
    ...(cipherSuites !== undefined && { cipherSuites }),
    ...(bootMode !== undefined && { bootMode }),
    ...(secret?.has("kg") === true && { bmcKey: readKey(target, secret, name, "kg", where) }),
  };
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
    identify: (): Promise<HostIdentity> => refuse(),
    readPower: (): Promise<PowerReading> => refuse(),
    forceOff: (): Promise<void> => refuse(),
    on: (): Promise<void> => refuse(),
    setBootOverride: (): Promise<void> => refuse(),
    readBootOverride: (): Promise<BootOverride> => refuse(),
    close: () => Promise.resolve(),
  };
}
