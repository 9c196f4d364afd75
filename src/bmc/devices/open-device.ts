import { parseBmcAddress } from "../interface/address.ts";
import { BmcGate } from "../gate/bmc-gate.ts";
import type { DeviceDeps, PowerDriver } from "../interface/driver.ts";
import type { DeviceConfig, OpenDevice } from "../interface/device-config.ts";
import { DEFAULT_CIPHER_SUITES } from "../interface/cipher-suites.ts";
import { HttpDriver } from "../http-driver/http-driver.ts";
import { Client } from "../ipmi/session/client.ts";
import { IpmiDriver } from "../ipmi/ipmi-driver.ts";
import { Connection } from "../redfish/http/connection.ts";
import { RedfishDriver } from "../redfish/redfish-driver.ts";
import { Service } from "../redfish/session/service.ts";
import { SnmpDriver } from "../snmp/snmp-driver.ts";

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
    const { timeouts } = config;
    const options = { address, login: credentials, bmcKey, suites, timeouts, deps };
    const client = new Client({ ...options, gate });
    // Evidence is read through a BMC gate of its own, so that its logins delay no other login, and its failures do not
    // count against the BMC.
    const openSide = (): Client => new Client({ ...options, gate: new BmcGate(deps.clock) });
    const { precedence } = gate;
    const { clock } = deps;
    const { password } = config;
    return new IpmiDriver(address, client, { callTimeoutMs, clock, bootMode, precedence, openSide, password });
  }
  if (address.protocol === "driver") return new HttpDriver(address, config, gate, deps);
  if (address.protocol === "snmp") return new SnmpDriver(address, config, gate, deps);
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
 * Wraps `open` so that its devices send no order and set no boot override while `isOrderAllowed` returns false, because
 * another process may hold the lease.
 */
export function guardOrders(open: OpenDevice, isOrderAllowed: () => boolean): OpenDevice {
  return (config, deps) => open(config, { ...deps, isOrderAllowed });
}
