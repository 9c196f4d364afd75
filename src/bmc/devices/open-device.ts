import { parseBmcAddress } from "../interface/address.ts";
import type { BmcGate } from "../gate/bmc-gate.ts";
import type { DeviceDeps, PowerDriver } from "../interface/driver.ts";
import type { DeviceConfig, OpenDevice } from "../interface/device-config.ts";
import { DEFAULT_CIPHER_SUITES } from "../interface/cipher-suites.ts";
import { Client } from "../ipmi/session/client.ts";
import { IpmiDriver } from "../ipmi/ipmi-driver.ts";
import { Connection } from "../redfish/http/connection.ts";
import { RedfishDriver } from "../redfish/redfish-driver.ts";
import { Service } from "../redfish/session/service.ts";

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

/**
 * Its devices send no order, and set no boot override, while `isOrderAllowed` is false: another process may hold the
 * lease.
 */
export function guardOrders(open: OpenDevice, isOrderAllowed: () => boolean): OpenDevice {
  return (config, deps) => open(config, { ...deps, isOrderAllowed });
}
