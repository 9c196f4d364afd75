import type { CipherSuiteId } from "./cipher-suites.ts";
import type { DeviceDeps, DeviceTimeouts, PowerDriver } from "./driver.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { Secret } from "../../runtime/secret.ts";

export type TlsVersion = "1.0" | "1.1" | "1.2" | "1.3";

/** How to trust the certificate of a device. Without any of these, the roots of this machine decide. */
export interface DeviceTls {
  /** PEM bundle of the authorities that may have signed it, instead of the roots of this machine. */
  ca?: string;
  /** SHA-256 of the certificate in hex, with or without colons: only this certificate is trusted. */
  sha256Fingerprint?: string;
  /** Trust any certificate. A pin is still checked. */
  insecureSkipVerify: boolean;
  /**
   * The oldest version that is used: 1.2 by default. Below that, weak ciphers, short keys and finite-field
   * Diffie-Hellman are allowed as well.
   */
  minVersion?: TlsVersion;
}

/** The firmware interface for a boot override. */
export type BootMode = "UEFI" | "Legacy";

/** Whether this is the expected host. */
export type IsHost = (identity: HostIdentity) => boolean;

/** Everything that is needed to talk to one power device. */
export interface DeviceConfig {
  address: string;
  username: string;
  password: Secret;
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
}

/**
 * Creates the driver for a device. Nothing is sent before the first call.
 *
 * @throws BmcError Unsupported for an address that cannot be parsed, TlsUntrusted for TLS settings without a valid
 * certificate or SHA-256.
 */
export type OpenDevice = (config: DeviceConfig, deps: DeviceDeps) => PowerDriver;
