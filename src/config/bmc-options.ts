import type { Option } from "./option.ts";
import {
  parseBoolean,
  parseCipherSuites,
  parseFingerprint,
  parseText,
  parseTimeout,
  parseTlsVersion,
  proposeBooleans,
  proposeTlsVersions,
} from "./parsers.ts";
import { SNMP_OPTIONS } from "./snmp-options.ts";

/**
 * How a command reaches the BMC at a given address. The password is not an option, because every user of a machine can
 * read its command lines. It comes from `IRONFENCE_BMC_PASSWORD`, a file, or the prompt.
 */
export const BMC_OPTIONS = {
  username: {
    name: "username",
    env: "IRONFENCE_BMC_USERNAME",
    defaultText: undefined,
    placeholder: "name",
    brief: "User of the BMC; the command asks for it by default",
    parse: parseText,
  } satisfies Option<string>,
  passwordFile: {
    name: "passwordFile",
    env: "IRONFENCE_BMC_PASSWORD_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief: "File with the password of the BMC; by default $IRONFENCE_BMC_PASSWORD, or the command asks for it",
    parse: parseText,
  } satisfies Option<string>,
  clientCertFile: {
    name: "clientCertFile",
    env: "IRONFENCE_BMC_CLIENT_CERT_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief: "PEM client certificate for a driver server; the command then needs a password only if --username is given",
    parse: parseText,
  } satisfies Option<string>,
  clientKeyFile: {
    name: "clientKeyFile",
    env: "IRONFENCE_BMC_CLIENT_KEY_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief: "PEM key of the client certificate, without a passphrase",
    parse: parseText,
  } satisfies Option<string>,
  caFile: {
    name: "caFile",
    env: "IRONFENCE_BMC_CA_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief:
      "PEM bundle of the authority that signed the certificate of the BMC; by default those that this machine trusts",
    parse: parseText,
  } satisfies Option<string>,
  sha256Fingerprint: {
    name: "sha256Fingerprint",
    env: "IRONFENCE_BMC_SHA256_FINGERPRINT",
    defaultText: undefined,
    placeholder: "hex",
    brief: "SHA-256 of the certificate of the BMC: only this one is trusted (ironfence probe prints it)",
    parse: parseFingerprint,
  } satisfies Option<string>,
  insecureSkipVerify: {
    name: "insecureSkipVerify",
    env: "IRONFENCE_BMC_INSECURE_SKIP_VERIFY",
    defaultText: "false",
    placeholder: "bool",
    brief: "true: trust any certificate; an attacker on the network can then read the password",
    parse: parseBoolean,
    propose: proposeBooleans,
  } satisfies Option<boolean>,
  tlsMinVersion: {
    name: "tlsMinVersion",
    env: "IRONFENCE_BMC_TLS_MIN_VERSION",
    defaultText: "1.2",
    placeholder: "version",
    brief: "Oldest TLS version to accept; a version below 1.2, for old BMCs, also accepts weak ciphers",
    parse: parseTlsVersion,
    propose: proposeTlsVersions,
  } satisfies Option<"1.0" | "1.1" | "1.2" | "1.3">,
  cipherSuites: {
    name: "cipherSuites",
    env: "IRONFENCE_BMC_CIPHER_SUITES",
    defaultText: "17,3",
    placeholder: "list",
    brief:
      "IPMI cipher suites to try, in order; 2 and 16 do not encrypt, 1 and 15 neither encrypt nor authenticate messages",
    parse: parseCipherSuites,
  } satisfies Option<(1 | 2 | 3 | 15 | 16 | 17)[]>,
  ...SNMP_OPTIONS,
} as const;

/** The environment variable from which the password of a BMC is read. */
export const BMC_PASSWORD_ENV = "IRONFENCE_BMC_PASSWORD";
/** The environment variable from which the key (K_G) of an IPMI BMC is read, if it has one. */
export const BMC_KEY_ENV = "IRONFENCE_BMC_KG";

/** How long `power off`, `on` and `cycle` wait for each change. */
export const POWER_TIMEOUT_OPTION: Option<number> = {
  name: "timeout",
  env: "IRONFENCE_POWER_TIMEOUT",
  defaultText: "120s",
  placeholder: "duration",
  brief: "How long each change of the power may take",
  parse: parseTimeout,
};

/** How long `fence` waits for the verdict. */
export const FENCE_TIMEOUT_OPTION: Option<number> = {
  name: "timeout",
  env: "IRONFENCE_FENCE_TIMEOUT",
  defaultText: "30m",
  placeholder: "duration",
  brief: "How long to wait for the result; the remediation continues after that",
  parse: parseTimeout,
};

/** How long `enroll` waits until the node is back. */
export const ENROLL_TIMEOUT_OPTION: Option<number> = {
  name: "timeout",
  env: "IRONFENCE_ENROLL_TIMEOUT",
  defaultText: "20m",
  placeholder: "duration",
  brief: "How long the node may take to come back after the outlets are on again",
  parse: parseTimeout,
};

/** How long `drill` waits until the pods of the node have left. */
export const DRAIN_TIMEOUT_OPTION: Option<number> = {
  name: "drainTimeout",
  env: "IRONFENCE_DRAIN_TIMEOUT",
  defaultText: "10m",
  placeholder: "duration",
  brief: "How long the pods of the node may take to leave; after that the node is uncordoned",
  parse: parseTimeout,
};

/** How long `pause` holds power-offs; by default until `resume`. */
export const PAUSE_FOR_OPTION: Option<number> = {
  name: "for",
  env: "IRONFENCE_PAUSE_FOR",
  defaultText: undefined,
  placeholder: "duration",
  brief: "How long, such as 2h; by default until ironfence resume",
  parse: parseTimeout,
};
