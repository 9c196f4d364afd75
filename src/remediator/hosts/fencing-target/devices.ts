import { X509Certificate } from "node:crypto";
import { ALLOWED_ADDRESSES } from "../../../api/names/annotations.ts";
import type { Device, FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { BmcCredentials, ClientCertificate } from "../../../bmc/interface/credentials.ts";
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
import type { DeviceConfig, DeviceTls, OpenDevice, SnmpConfig } from "../../../bmc/interface/device-config.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import { readSecret } from "../../../kube/objects/secret-reader.ts";
import type { StoredSecret } from "../../../kube/objects/secret-reader.ts";
import { parseDurationMs } from "../../../runtime/duration.ts";
import { Secret } from "../../../runtime/secret.ts";
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

/** Reads a Secret of the namespace of the target, each once. */
type ReadSecret = (name: string) => Promise<StoredSecret | undefined>;

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

async function readCredentials(
  target: FencingTarget,
  device: Device,
  where: string,
  readSecret: ReadSecret,
): Promise<BmcCredentials> {
  const { name } = device.credentialsSecretRef;
  refusePlainHttp(device, where);
  refusePlainSnmp(device, where);
  const keys = isV2c(device) ? "the key community" : "keys username and password";
  const secret = await requireSecret(target, name, keys, where, readSecret);
  const origin = originText(device.address);
  const allowed = secret.annotations[ALLOWED_ADDRESSES];
  const isFree = allowed === undefined ? wasSentByFirstVersion(target) : isAllowed(allowed, device.address);
  if (origin !== undefined && !isFree) {
    const message = `${secretText(target, name)} may not be sent to the address of ${where}: if the address is correct, add ${origin} to the annotation ${ALLOWED_ADDRESSES}`;
    throw new TargetError("AddressNotAllowed", message);
  }
  const certificate = readCertificate(target, device, secret, where);
  if (certificate !== undefined && !secret.has("password")) return { username: "", password: NO_PASSWORD, certificate };
  if (isV2c(device)) return { username: "", password: readKey(target, secret, name, "community", where) };
  const username = readKey(target, secret, name, "username", where);
  const password = readKey(target, secret, name, "password", where);
  return { username: username.reveal(), password, ...(certificate && { certificate }) };
}

const NO_PASSWORD = new Secret("");

/** The client certificate for a driver server: a Secret of type kubernetes.io/tls has these keys. */
function readCertificate(
  target: FencingTarget,
  { address, credentialsSecretRef: { name } }: Device,
  secret: StoredSecret,
  where: string,
): ClientCertificate | undefined {
  const isForServer = originText(address)?.startsWith("driver") === true;
  if (!isForServer || !(secret.has("tls.crt") || secret.has("tls.key"))) return undefined;
  const cert = readKey(target, secret, name, "tls.crt", where).reveal();
  return { cert, key: readKey(target, secret, name, "tls.key", where) };
}

/**
 * A password that is sent over plain HTTP can be read on the way, so a separate field has to allow it. A driver server
 * gets no password, but anyone on the way can read the requests to it.
 */
function refusePlainHttp({ address, allowPlainHTTP }: Device, where: string): void {
  if (allowPlainHTTP || !/^(?:driver\+)?http:/u.test(originText(address) ?? "")) return;
  const message = `${where} has a plain HTTP address, over which the password can be read: use HTTPS, or set allowPlainHTTP`;
  throw new TargetError("AddressNotAllowed", message);
}

/** Anyone on the network can read a community and answer in the name of the PDU: a separate field has to allow it. */
function refusePlainSnmp(device: Device, where: string): void {
  if (!isV2c(device) || device.snmp?.allowPlainText === true) return;
  const message = `${where} uses SNMPv2c, with which the community can be read and an Off can be forged: use v3, or set snmp.allowPlainText`;
  throw new TargetError("AddressNotAllowed", message);
}

function isV2c({ address, snmp }: Device): boolean {
  return isOutletAddress(address) && snmp?.version === "v2c";
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

async function readSnmp(
  target: FencingTarget,
  { snmp, credentialsSecretRef: { name } }: Device,
  where: string,
  readSecret: ReadSecret,
): Promise<SnmpConfig> {
  const { allowPlainText: _, mib, ...protocols } = snmp ?? {};
  const secret = await readSecret(name);
  return {
    ...protocols,
    ...(mib !== undefined && { mib }),
    ...(secret?.has("privPassword") === true && {
      privPassword: readKey(target, secret, name, "privPassword", where),
    }),
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
