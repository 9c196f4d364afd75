import type { CipherSuiteId } from "./cipher-suites.ts";
import type { ClientCertificate } from "./credentials.ts";
import type { DeviceDeps, DeviceTimeouts, PowerDriver } from "./driver.ts";
import type { Mib } from "./mibs.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { Secret } from "../../runtime/secret.ts";

export type TlsVersion = "1.0" | "1.1" | "1.2" | "1.3";

/** How to verify the certificate of a device. By default, the certificate authorities of this machine are trusted. */
export interface DeviceTls {
  /** PEM bundle of the authorities that are trusted instead of those of this machine. */
  ca?: string;
  /** SHA-256 of the certificate in hex, with or without colons: only this certificate is trusted. */
  sha256Fingerprint?: string;
  /** Trust any certificate. A pin is still checked. */
  insecureSkipVerify: boolean;
  /**
   * The oldest TLS version that is accepted: 1.2 by default. Below 1.2, weak ciphers, short keys and finite-field
   * Diffie-Hellman are allowed as well.
   */
  minVersion?: TlsVersion;
}

/** The firmware interface for a boot override. */
export type BootMode = "UEFI" | "Legacy";

/** Whether this is the expected host. */
export type IsHost = (identity: HostIdentity) => boolean;

export const SNMP_AUTH_PROTOCOLS = ["SHA-512", "SHA-384", "SHA-256", "SHA-224", "SHA", "MD5"] as const;
export const SNMP_PRIV_PROTOCOLS = ["AES", "AES-256", "AES-256-C"] as const;

/** How to speak to a PDU. */
export interface SnmpConfig {
  version?: "v3" | "v2c";
  /** `authPriv` by default. `authNoPriv` signs messages and does not encrypt them. */
  securityLevel?: "authPriv" | "authNoPriv";
  /** `SHA-256` by default. */
  authProtocol?: (typeof SNMP_AUTH_PROTOCOLS)[number];
  /**
   * `AES` (128 bits) by default. Of the two with 256 bits, `AES-256` extends the key by the method of Blumenthal, and
   * `AES-256-C` by that of Reeder.
   */
  privProtocol?: (typeof SNMP_PRIV_PROTOCOLS)[number];
  /** The password for encryption, if it differs from the one for authentication. */
  privPassword?: Secret;
  /** The vendor's table of outlets. By default, the sysObjectID of the PDU selects it. */
  mib?: Mib;
}

/** Everything that is needed to talk to one power device. */
export interface DeviceConfig {
  address: string;
  /** Empty, like the password, for a driver server with a client certificate and without a key. */
  username: string;
  password: Secret;
  /** For a driver server. */
  certificate?: ClientCertificate;
  tls: DeviceTls;
  timeouts: DeviceTimeouts;
  /** Selects the host on a Redfish BMC with several, if the address names none. */
  isHost?: IsHost;
  /** For Redfish only. */
  redfish?: {
    /**
     * Paths of the Chassis that have to be off for the host to be off; none if empty. By default each Chassis to which
     * the System links and that contains only this System.
     */
    powerChassis?: readonly string[];
  };
  /** For IPMI only. */
  ipmi?: {
    /** Cipher suites to try, in this order: 17, then 3, by default. */
    cipherSuites?: readonly CipherSuiteId[];
    /** The firmware interface for a boot override: `UEFI` by default. */
    bootMode?: BootMode;
    /** The key (K_G) of the BMC, if it has one: its text, or its bytes in hex after 0x. */
    bmcKey?: Secret;
  };
  /** For SNMP only: `v3` with `authPriv` by default. For `v2c` the password is the community. */
  snmp?: SnmpConfig;
}

/**
 * Creates the driver for a device. Nothing is sent before the first call.
 *
 * @throws BmcError Unsupported for an address that cannot be parsed, TlsUntrusted for a CA bundle or a SHA-256 that
 * cannot be parsed, AuthFailed for a key or a client certificate of a driver server that cannot be used.
 */
export type OpenDevice = (config: DeviceConfig, deps: DeviceDeps) => PowerDriver;
