import type { Option } from "./option.ts";
import { parseOneOf, proposeOf } from "./parsers.ts";

const VERSIONS = ["v3", "v2c"] as const;
const LEVELS = ["authPriv", "authNoPriv"] as const;
const AUTH_PROTOCOLS = ["SHA-512", "SHA-384", "SHA-256", "SHA-224", "SHA", "MD5"] as const;
const PRIV_PROTOCOLS = ["AES", "AES-256", "AES-256-C"] as const;
const MIBS = ["APC-rPDU2", "APC-rPDU", "Raritan", "Eaton", "Vertiv", "ServerTech-3", "ServerTech-4"] as const;

/** How a command talks to the PDU of an outlet. The options for user and password are those for a BMC. */
export const SNMP_OPTIONS = {
  snmpVersion: {
    name: "snmpVersion",
    env: "IRONFENCE_SNMP_VERSION",
    defaultText: "v3",
    placeholder: "version",
    brief: "v3 or v2c; with v2c the password is the community, and it and the answers cross the network unprotected",
    parse: parseOneOf(VERSIONS),
    propose: proposeOf(VERSIONS),
  } satisfies Option<(typeof VERSIONS)[number]>,
  snmpSecurityLevel: {
    name: "snmpSecurityLevel",
    env: "IRONFENCE_SNMP_SECURITY_LEVEL",
    defaultText: "authPriv",
    placeholder: "level",
    brief: "authPriv, or authNoPriv to sign messages of SNMPv3 without encryption",
    parse: parseOneOf(LEVELS),
    propose: proposeOf(LEVELS),
  } satisfies Option<(typeof LEVELS)[number]>,
  snmpAuthProtocol: {
    name: "snmpAuthProtocol",
    env: "IRONFENCE_SNMP_AUTH_PROTOCOL",
    defaultText: "SHA-256",
    placeholder: "name",
    brief: `How messages of SNMPv3 are signed: ${AUTH_PROTOCOLS.join(", ")}`,
    parse: parseOneOf(AUTH_PROTOCOLS),
    propose: proposeOf(AUTH_PROTOCOLS),
  } satisfies Option<(typeof AUTH_PROTOCOLS)[number]>,
  snmpPrivProtocol: {
    name: "snmpPrivProtocol",
    env: "IRONFENCE_SNMP_PRIV_PROTOCOL",
    defaultText: "AES",
    placeholder: "name",
    brief: `How messages of SNMPv3 are encrypted: ${PRIV_PROTOCOLS.join(", ")}`,
    parse: parseOneOf(PRIV_PROTOCOLS),
    propose: proposeOf(PRIV_PROTOCOLS),
  } satisfies Option<(typeof PRIV_PROTOCOLS)[number]>,
  snmpMib: {
    name: "snmpMib",
    env: "IRONFENCE_SNMP_MIB",
    defaultText: undefined,
    placeholder: "name",
    brief: `Table of outlets of the vendor: ${MIBS.join(", ")}; by default the sysObjectID of the PDU selects it`,
    parse: parseOneOf(MIBS),
    propose: proposeOf(MIBS),
  } satisfies Option<(typeof MIBS)[number]>,
} as const;

/**
 * The environment variable from which the password for encryption with SNMPv3 is read, if it differs from the password.
 */
export const SNMP_PRIV_PASSWORD_ENV = "IRONFENCE_SNMP_PRIV_PASSWORD";
