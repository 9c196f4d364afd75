import { parseBmcAddress } from "./address.ts";
import type { DeviceTimeouts, PowerDriver } from "./driver.ts";
import { BmcError } from "./errors.ts";
import { Connection } from "./redfish/connection.ts";
import { RedfishDriver } from "./redfish/redfish-driver.ts";
import { Service } from "./redfish/service.ts";
import type { DeviceTls } from "./redfish/tls.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Secret } from "../runtime/secret.ts";
import type { Logger } from "../telemetry/logger.ts";

export type { DeviceTls };

/** All that is needed to talk to one power device. */
export interface DeviceConfig {
  address: string;
  username: string;
  password: Secret;
  tls: DeviceTls;
  timeouts: DeviceTimeouts;
}

/**
 * Makes the driver for a device. Nothing is sent before the first call.
 *
 * @throws BmcError Unsupported for an address or protocol that cannot be served, TlsUntrusted for TLS settings that hold no
 * certificate or no SHA-256.
 */
export function openDevice(config: DeviceConfig, deps: { clock: Clock; logger: Logger }): PowerDriver {
  const address = parseBmcAddress(config.address);
  if (address.protocol === "ipmi") {
    throw new BmcError("Unsupported", `${address.text}: IPMI is not supported yet; use the BMC's Redfish address`);
  }
  const { callTimeoutMs, connectTimeoutMs } = config.timeouts;
  const connection = new Connection({ origin: address.origin, tls: config.tls, connectTimeoutMs, deps });
  const credentials = { username: config.username, password: config.password };
  const service = new Service({ connection, credentials, callTimeoutMs, deps });
  return new RedfishDriver(address, service, { callTimeoutMs, clock: deps.clock });
}
