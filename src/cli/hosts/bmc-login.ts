import { open } from "node:fs/promises";
import type { ClientCertificate } from "../../bmc/interface/credentials.ts";
import { DEFAULT_DEVICE_TIMEOUTS } from "../../bmc/interface/driver.ts";
import type { DeviceConfig, SnmpConfig } from "../../bmc/interface/device-config.ts";
import { isOutletAddress } from "../../bmc/interface/address.ts";
import { SNMP_PRIV_PASSWORD_ENV } from "../../config/snmp-options.ts";
import { BMC_KEY_ENV, BMC_OPTIONS, BMC_PASSWORD_ENV } from "../../config/bmc-options.ts";
import { flagName, OptionError, requireOption, resolveOption } from "../../config/option.ts";
import { Secret } from "../../runtime/secret.ts";
import type { CliContext } from "../terminal/context.ts";
import type { FlagTexts } from "../../config/option.ts";

/** Longest password or CA bundle that is read from a file. */
const FILE_BYTES_MAX = 1_048_576;

/**
 * Reads what is needed to connect to the BMC at `address`, from flags, environment and files. User and password may
 * also come from the terminal.
 *
 * @throws OptionError if something is missing or cannot be read.
 */
export async function readDeviceConfig(context: CliContext, address: string, flags: FlagTexts): Promise<DeviceConfig> {
  const { env } = context.process;
  const caFile = resolveOption(BMC_OPTIONS.caFile, flags, env);
  const sha256Fingerprint = resolveOption(BMC_OPTIONS.sha256Fingerprint, flags, env);
  const tls = {
    insecureSkipVerify: requireOption(BMC_OPTIONS.insecureSkipVerify, flags, env),
    minVersion: requireOption(BMC_OPTIONS.tlsMinVersion, flags, env),
    ...(sha256Fingerprint !== undefined && { sha256Fingerprint }),
    ...(caFile !== undefined && { ca: await readCa(caFile) }),
  };
  const bmcKey = env[BMC_KEY_ENV] ?? "";
  const ipmi = {
    cipherSuites: requireOption(BMC_OPTIONS.cipherSuites, flags, env),
    ...(bmcKey !== "" && { bmcKey: new Secret(bmcKey) }),
  };
  const certificate = await readCertificate(address, flags, env);
  const snmp = readSnmp(address, flags, env);
  const given = resolveOption(BMC_OPTIONS.username, flags, env);
  const known = {
    address,
    tls,
    ipmi,
    timeouts: DEFAULT_DEVICE_TIMEOUTS,
    ...(certificate && { certificate }),
    ...(snmp && { snmp }),
  };
  if (snmp?.version === "v2c") return { ...known, username: "", password: await readPassword(context, flags) };
  if (certificate !== undefined && given === undefined) return { ...known, username: "", password: new Secret("") };
  const username = given ?? (await ask(context, "User of the BMC: ", true));
  if (username === undefined || username === "") {
    throw new OptionError(`--username (or ${BMC_OPTIONS.username.env}) is required`);
  }
  const password = await readPassword(context, flags);
  return { ...known, username, password };
}

function readSnmp(address: string, flags: FlagTexts, env: CliContext["process"]["env"]): SnmpConfig | undefined {
  if (!isOutletAddress(address)) return undefined;
  const mib = resolveOption(BMC_OPTIONS.snmpMib, flags, env);
  const privPassword = env[SNMP_PRIV_PASSWORD_ENV] ?? "";
  return {
    version: requireOption(BMC_OPTIONS.snmpVersion, flags, env),
    securityLevel: requireOption(BMC_OPTIONS.snmpSecurityLevel, flags, env),
    authProtocol: requireOption(BMC_OPTIONS.snmpAuthProtocol, flags, env),
    privProtocol: requireOption(BMC_OPTIONS.snmpPrivProtocol, flags, env),
    ...(mib !== undefined && { mib }),
    ...(privPassword !== "" && { privPassword: new Secret(privPassword) }),
  };
}

async function readCertificate(
  address: string,
  flags: FlagTexts,
  env: CliContext["process"]["env"],
): Promise<ClientCertificate | undefined> {
  const certFile = resolveOption(BMC_OPTIONS.clientCertFile, flags, env);
  const keyFile = resolveOption(BMC_OPTIONS.clientKeyFile, flags, env);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw new OptionError("--client-cert-file and --client-key-file must be given together");
  }
  if (!/^driver(?:\+https?)?:/iu.test(address)) {
    throw new OptionError("--client-cert-file: only a driver server takes a client certificate");
  }
  const cert = await readText("clientCertFile", certFile);
  return { cert, key: new Secret(await readText("clientKeyFile", keyFile)) };
}

async function readCa(path: string): Promise<string> {
  const text = await readText("caFile", path);
  // Without this check the error would blame the certificate of the BMC, and not the file.
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new OptionError(`--ca-file: ${path}: contains no PEM certificate`);
  return text;
}

async function readPassword(context: CliContext, flags: FlagTexts): Promise<Secret> {
  const { env } = context.process;
  const file = resolveOption(BMC_OPTIONS.passwordFile, flags, env);
  // A file that was written with `echo` ends in a newline, which is not part of the password.
  if (file !== undefined) return nonEmpty((await readText("passwordFile", file)).replace(/\r?\n$/, ""), file);
  const variable = env[BMC_PASSWORD_ENV];
  if (variable !== undefined && variable !== "") return new Secret(variable);
  const typed = await ask(context, "Password: ", false);
  if (typed !== undefined) return nonEmpty(typed, "the prompt");
  throw new OptionError(`a password is required: set ${BMC_PASSWORD_ENV}, or name a file with --password-file`);
}

function nonEmpty(text: string, source: string): Secret {
  if (text === "") throw new OptionError(`the password from ${source} is empty`);
  return new Secret(text);
}

async function ask(context: CliContext, question: string, echo: boolean): Promise<string | undefined> {
  return context.terminal?.ask(question, { echo }, context.signal);
}

async function readText(option: keyof typeof BMC_OPTIONS, path: string): Promise<string> {
  try {
    const file = await open(path);
    try {
      // Reading one byte more than allowed detects a file that is too long, and bounds an endless one (/dev/zero).
      const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) break;
      }
      if (length > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`);
      return buffer.toString("utf8", 0, length);
    } finally {
      await file.close();
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : "cannot be read";
    throw new OptionError(`${flagName(option)}: ${path}: ${why}`, { cause: error });
  }
}
