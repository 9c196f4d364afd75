import { X509Certificate } from "node:crypto";
import { ALLOWED_ADDRESSES } from "../../api/annotations.ts";
import { SECRETS } from "../../api/core-types.ts";
import type { SecretObject } from "../../api/core.ts";
import type { Device, FencingTarget } from "../../api/fencing-target.ts";
import type { BootOverride, DeviceTimeouts, HostIdentity, PowerDriver, PowerReading } from "../../bmc/driver.ts";
import { DEFAULT_DEVICE_TIMEOUTS } from "../../bmc/driver.ts";
import { BmcError } from "../../bmc/errors.ts";
import type { DeviceConfig, DeviceTls, openDevice } from "../../bmc/open-device.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { parseDurationMs } from "../../runtime/duration.ts";
import { Secret } from "../../runtime/secret.ts";
import { isAllowed, originText } from "./allowed-addresses.ts";
import { TargetError } from "./host.ts";
import { compareIdentity, expectedIdentity } from "./identity.ts";
import { wasSentByFirstVersion } from "./sent-before.ts";

/** What a device is logged in to with. */
export interface Credentials {
  username: string;
  password: Secret;
}

/** One device of a target with its driver; `failure` where its configuration allows none, and then every call fails so. */
export interface OpenedDevice {
  address: string;
  level: number;
  driver: PowerDriver;
  credentials?: Credentials;
  failure?: TargetError;
}

export interface OpenDevicesDeps {
  runtime: KubeRuntime;
  openDevice: typeof openDevice;
}

/**
 * Makes the drivers of all devices of a target, with credentials and certificates read live from Secrets of the target's
 * namespace. A device that cannot be used as configured is no reason to give up the others. Nothing is sent to any device.
 *
 * @throws KubeError where a Secret cannot be read for any reason but its absence.
 */
export async function openDevices(
  deps: OpenDevicesDeps,
  target: FencingTarget,
  signal: AbortSignal,
): Promise<OpenedDevice[]> {
  const reads = new Map<string, Promise<SecretObject | undefined>>();
  const readSecret = (name: string): Promise<SecretObject | undefined> => {
    const read = reads.get(name) ?? readSecretLive(deps.runtime, target, name, signal);
    reads.set(name, read);
    return read;
  };
  return Promise.all(target.spec.devices.map((device, index) => openOne(deps, target, device, index, readSecret)));
}

/** Two that a BMC cannot tell apart. */
export function sameCredentials(a: Credentials, b: Credentials): boolean {
  return a.username === b.username && a.password.equals(b.password);
}

type ReadSecret = (name: string) => Promise<SecretObject | undefined>;

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

function openDriver(deps: OpenDevicesDeps, config: Parameters<typeof openDevice>[0], where: string): PowerDriver {
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
): Promise<Credentials> {
  const { name } = device.credentialsSecretRef;
  refusePlainHttp(device, where);
  const secret = await requireSecret(target, name, "keys username and password", where, readSecret);
  const origin = originText(device.address);
  const allowed = secret.metadata.annotations?.[ALLOWED_ADDRESSES];
  const isFree = allowed === undefined ? wasSentByFirstVersion(target) : isAllowed(allowed, device.address);
  if (origin !== undefined && !isFree) {
    const message = `${secretText(target, name)} does not allow to be sent to the address of ${where}: if that is right, add ${origin} to its annotation ${ALLOWED_ADDRESSES}`;
    throw new TargetError("AddressNotAllowed", message);
  }
  const username = readKey(target, secret, name, "username", where);
  const password = readKey(target, secret, name, "password", where);
  return { username: username.reveal(), password };
}

/** A password that is sent over plain HTTP can be read on the way, so a field of its own has to ask for it. */
function refusePlainHttp({ address, allowPlainHTTP }: Device, where: string): void {
  if (allowPlainHTTP || originText(address)?.startsWith("http:") !== true) return;
  const message = `${where} has an address of plain HTTP, over which the password can be read: use HTTPS, or set allowPlainHTTP`;
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
    const message = `${secretText(target, name)}, tls.caSecretRef of ${where}, holds no PEM certificate in its key ${key}: store the bundle that signed the BMC's certificate there`;
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
): Promise<SecretObject> {
  const secret = await readSecret(name);
  if (secret !== undefined) return secret;
  const message = `${secretText(target, name)} of ${where} does not exist: create it in that namespace with ${content}`;
  throw new TargetError("SecretNotFound", message);
}

function readKey(target: FencingTarget, secret: SecretObject, name: string, key: string, where: string): Secret {
  const encoded = secret.data?.[key];
  const value = decodeValue(encoded);
  if (value !== undefined) return new Secret(value);
  const message = `${secretText(target, name)} of ${where} has ${encoded === undefined ? "no" : "an empty"} key ${key}: add it`;
  throw new TargetError("SecretInvalid", message);
}

/** One value of a Secret; undefined where it is not there, or empty. */
export function decodeValue(encoded: string | undefined): string | undefined {
  const text = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString("utf8");
  // A value typed with `echo` ends in a newline, which no BMC's form takes: it is never part of a user or password.
  const value = text.replace(/\r?\n$/, "");
  return value === "" ? undefined : value;
}

async function readSecretLive(
  runtime: KubeRuntime,
  target: FencingTarget,
  name: string,
  signal: AbortSignal,
): Promise<SecretObject | undefined> {
  const { namespace } = target.metadata;
  const key = namespace === undefined ? { name } : { namespace, name };
  try {
    return await runtime.client.get<SecretObject>(SECRETS, key, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
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
    ...(secret?.data?.["kg"] !== undefined && { bmcKey: readKey(target, secret, name, "kg", where) }),
  };
}

/** Longest deadline that a device may ask for: beyond it a fence would wait for a BMC that is not coming back. */
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

/** Stands in for a device that cannot be opened, so that its level fails and the next one is tried. */
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
