import { parseBmcAddress } from "./address.ts";
import type { DeviceTimeouts, PowerDriver } from "./driver.ts";
import { BmcError } from "./errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Secret } from "../runtime/secret.ts";
import type { Logger } from "../telemetry/logger.ts";

/** How to trust a device's certificate. Without any of these the machine's own roots decide. */
export interface DeviceTls {
  /** PEM bundle of the authorities that may have signed it, in place of the machine's own roots. */
  ca?: string;
  /** SHA-256 of the certificate in hex, with or without colons: this very certificate is trusted and no other. */
  sha256Fingerprint?: string;
  /** Trust any certificate. A pin is still honoured. */
  insecureSkipVerify: boolean;
}

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
export function openDevice(config: DeviceConfig, _deps: { clock: Clock; logger: Logger }): PowerDriver {
  const address = parseBmcAddress(config.address);
  if (address.protocol === "ipmi") {
    throw new BmcError("Unsupported", `${address.text}: IPMI is not supported yet; use the BMC's Redfish address`);
  }
  throw new BmcError("Unsupported", `${address.text}: no driver yet`);
}
