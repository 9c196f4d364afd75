import { X509Certificate } from "node:crypto";
import type { Device, FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { ALLOWED_ADDRESSES } from "../../../api/names/annotations.ts";
import { isOutletAddress } from "../../../bmc/interface/address.ts";
import type { BmcCredentials, ClientCertificate } from "../../../bmc/interface/credentials.ts";
import type { DeviceConfig, DeviceTls, SnmpConfig } from "../../../bmc/interface/device-config.ts";
import type { StoredSecret } from "../../../kube/objects/secret-reader.ts";
import { Secret } from "../../../runtime/secret.ts";
import { isAllowed, originText } from "../model/allowed-addresses.ts";
import { TargetError } from "../model/host.ts";
import { wasSentByFirstVersion } from "./sent-before.ts";

// What the configuration of a device takes from Secrets: credentials, certificates and keys. Each of these functions
// throws a TargetError if a Secret is missing, lacks a key or may not be sent to the address of the device. `where`
// names the device in messages.

/** Reads a Secret in the namespace of the target; undefined if there is none. */
export type ReadSecret = (name: string) => Promise<StoredSecret | undefined>;

export async function readCredentials(
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

export async function readTls(
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

export async function readIpmi(
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

export async function readSnmp(
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
