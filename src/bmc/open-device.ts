import { parseBmcAddress } from "./address.ts";
import type { DeviceDeps, DeviceTimeouts, PowerDriver } from "./driver.ts";
import type { BootMode } from "./ipmi/chassis.ts";
import { DEFAULT_CIPHER_SUITES } from "./ipmi/cipher-suite.ts";
import type { CipherSuiteId } from "./ipmi/cipher-suite.ts";
import { Client } from "./ipmi/client.ts";
import { IpmiDriver } from "./ipmi/ipmi-driver.ts";
import type { IsHost } from "./redfish/choose-system.ts";
import { Connection } from "./redfish/connection.ts";
import { RedfishDriver } from "./redfish/redfish-driver.ts";
import { Service } from "./redfish/service.ts";
import type { DeviceTls } from "./redfish/tls.ts";
import type { Secret } from "../runtime/secret.ts";

export type { DeviceTls };

/** All that is needed to talk to one power device. */
export interface DeviceConfig {
  address: string;
  username: string;
  password: Secret;
  tls: DeviceTls;
  timeouts: DeviceTimeouts;
  /** Selects the host on a Redfish BMC with several, if the address names none. */
  isHost?: IsHost;
  /** For Redfish alone. */
  redfish?: {
    /**
     * Paths of the Chassis that have to be off for the host to be off, none if empty. By default each that the System links
     * to and that contains this System alone.
     */
    powerChassis?: readonly string[];
  };
  /** For IPMI alone. */
  ipmi?: {
    /** Cipher suites to try, in this order: 17, then 3, by default. */
    cipherSuites?: readonly CipherSuiteId[];
    /** Firmware interface that a boot override is meant for: `UEFI` by default. */
    bootMode?: BootMode;
    /** The BMC's own key (K_G), where it has one: its text, or its bytes in hex behind 0x. */
    bmcKey?: Secret;
  };
}

/**
 * Makes the driver for a device. Nothing is sent before the first call.
 *
 * @throws BmcError Unsupported for an address that cannot be read, TlsUntrusted for TLS settings that hold no
 * certificate or no SHA-256.
 */
export function openDevice(config: DeviceConfig, deps: DeviceDeps): PowerDriver {
  const address = parseBmcAddress(config.address);
  const { callTimeoutMs, connectTimeoutMs } = config.timeouts;
  const credentials = { username: config.username, password: config.password };
  if (address.protocol === "ipmi") {
    const { cipherSuites: suites = DEFAULT_CIPHER_SUITES, bootMode = "UEFI", bmcKey } = config.ipmi ?? {};
    const client = new Client({ address, login: credentials, bmcKey, suites, timeouts: config.timeouts, deps });
    return new IpmiDriver(address, client, { callTimeoutMs, clock: deps.clock, bootMode });
  }
  const connection = new Connection({ origin: address.origin, tls: config.tls, connectTimeoutMs, deps });
  const service = new Service({ connection, login: credentials, callTimeoutMs, deps });
  const { powerChassis } = config.redfish ?? {};
  return new RedfishDriver(address, service, { callTimeoutMs, clock: deps.clock, isHost: config.isHost, powerChassis });
}

/** The same; its devices send no order, and set no boot, while `mayOrder` says no: another process may hold the lease. */
export function guardOrders(open: typeof openDevice, mayOrder: () => boolean): typeof openDevice {
  return (config, deps) => open(config, { ...deps, mayOrder });
}
