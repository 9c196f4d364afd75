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

/**
 * How a command reaches a BMC that it was given the address of. The password itself is no option: it comes from
 * `IRONFENCE_BMC_PASSWORD`, a file, or the prompt, since every user of a machine can read its command lines.
 */
export const BMC_OPTIONS = {
  username: {
    name: "username",
    env: "IRONFENCE_BMC_USERNAME",
    defaultText: undefined,
    placeholder: "name",
    brief: "User of the BMC; absent: asked for on the terminal",
    parse: parseText,
  } satisfies Option<string>,
  passwordFile: {
    name: "passwordFile",
    env: "IRONFENCE_BMC_PASSWORD_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief: "File that holds the BMC's password; absent: $IRONFENCE_BMC_PASSWORD, then asked for without echo",
    parse: parseText,
  } satisfies Option<string>,
  caFile: {
    name: "caFile",
    env: "IRONFENCE_BMC_CA_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief: "PEM bundle that signed the BMC's certificate; absent: the machine's own authorities",
    parse: parseText,
  } satisfies Option<string>,
  sha256Fingerprint: {
    name: "sha256Fingerprint",
    env: "IRONFENCE_BMC_SHA256_FINGERPRINT",
    defaultText: undefined,
    placeholder: "hex",
    brief: "SHA-256 of the BMC's certificate: that very one is trusted, no other (ironfence probe prints it)",
    parse: parseFingerprint,
  } satisfies Option<string>,
  insecureSkipVerify: {
    name: "insecureSkipVerify",
    env: "IRONFENCE_BMC_INSECURE_SKIP_VERIFY",
    defaultText: "false",
    placeholder: "bool",
    brief: "true: trust any certificate; whoever stands in between can then read the password",
    parse: parseBoolean,
    propose: proposeBooleans,
  } satisfies Option<boolean>,
  tlsMinVersion: {
    name: "tlsMinVersion",
    env: "IRONFENCE_BMC_TLS_MIN_VERSION",
    defaultText: "1.2",
    placeholder: "version",
    brief: "Oldest TLS that is spoken; below 1.2, for BMCs that know nothing newer, weak ciphers pass as well",
    parse: parseTlsVersion,
    propose: proposeTlsVersions,
  } satisfies Option<"1.0" | "1.1" | "1.2" | "1.3">,
  cipherSuites: {
    name: "cipherSuites",
    env: "IRONFENCE_BMC_CIPHER_SUITES",
    defaultText: "17,3",
    placeholder: "list",
    brief: "IPMI cipher suites to try, in this order; 2 and 16 do not encrypt, 1 and 15 do not authenticate either",
    parse: parseCipherSuites,
  } satisfies Option<(1 | 2 | 3 | 15 | 16 | 17)[]>,
} as const;

/** The environment variable that a BMC's password may come from. */
export const BMC_PASSWORD_ENV = "IRONFENCE_BMC_PASSWORD";
/** The one that holds the own key (K_G) of an IPMI BMC, where it has one. */
export const BMC_KEY_ENV = "IRONFENCE_BMC_KG";

/** How long `power off`, `on` and `cycle` wait for each change. */
export const POWER_TIMEOUT_OPTION: Option<number> = {
  name: "timeout",
  env: "IRONFENCE_POWER_TIMEOUT",
  defaultText: "120s",
  placeholder: "duration",
  brief: "How long each change of power may take until it is read back",
  parse: parseTimeout,
};

/** How long `fence` waits for the verdict. */
export const FENCE_TIMEOUT_OPTION: Option<number> = {
  name: "timeout",
  env: "IRONFENCE_FENCE_TIMEOUT",
  defaultText: "30m",
  placeholder: "duration",
  brief: "How long the verdict is waited for; the remediation goes on all the same",
  parse: parseTimeout,
};

/** How long `pause` holds power-offs; absent: until `resume`. */
export const PAUSE_FOR_OPTION: Option<number> = {
  name: "for",
  env: "IRONFENCE_PAUSE_FOR",
  defaultText: undefined,
  placeholder: "duration",
  brief: "How long, e.g. 2h; absent: until ironfence resume",
  parse: parseTimeout,
};
