import { parseBmcAddress } from "./address.ts";
import type { BmcGate } from "./bmc-gate.ts";
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
     * Paths of the Chassis that have to be off for the host to be off; none if empty. By default each Chassis to which the System
     * links and that contains only this System.
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
 * @throws BmcError Unsupported for an address that cannot be parsed, TlsUntrusted for TLS settings without a valid certificate
 * or SHA-256.
 */
export type OpenDevice = (config: DeviceConfig, deps: DeviceDeps) => PowerDriver;

/** Returns the function that opens devices. Everything that it opens goes through `gate`. */
export function createOpenDevice(gate: BmcGate): OpenDevice {
  return (config, deps) => openDevice(gate, config, deps);
}

function openDevice(gate: BmcGate, config: DeviceConfig, deps: DeviceDeps): PowerDriver {
  const address = parseBmcAddress(config.address);
  const { callTimeoutMs, connectTimeoutMs } = config.timeouts;
  const credentials = { username: config.username, password: config.password };
  if (address.protocol === "ipmi") {
    const { cipherSuites: suites = DEFAULT_CIPHER_SUITES, bootMode = "UEFI", bmcKey } = config.ipmi ?? {};
    const client = new Client({ address, login: credentials, bmcKey, suites, timeouts: config.timeouts, gate, deps });
    return new IpmiDriver(address, client, { callTimeoutMs, clock: deps.clock, bootMode });
  }
  const { secureContexts } = gate;
  const connection = new Connection({
    origin: address.origin,
    tls: config.tls,
    connectTimeoutMs,
    secureContexts,
    deps,
  });
  const service = new Service({ connection, login: credentials, callTimeoutMs, gate, deps });
  const { powerChassis } = config.redfish ?? {};
  return new RedfishDriver(address, service, {
    callTimeoutMs,
    clock: deps.clock,
    gate,
    isHost: config.isHost,
    powerChassis,
  });
}

/** Its devices send no order, and set no boot override, while `isOrderAllowed` is false: another process may hold the lease. */
export function guardOrders(open: OpenDevice, isOrderAllowed: () => boolean): OpenDevice {
  return (config, deps) => open(config, { ...deps, isOrderAllowed });
}
