import type { FencingTargetStatus, OffProof } from "../../api/fencing-target.ts";
import type { HostIdentity, OffObstacle, PowerReading } from "../../bmc/driver.ts";
import type { BmcErrorCode } from "../../bmc/errors.ts";
import type { Credentials } from "../hosts/devices.ts";

/** What one device answered. */
export type DeviceProbe = {
  address: string;
  level: number;
  /** Position in spec.devices. */
  index: number;
} & (
  | { ok: true; identity: HostIdentity; reading: PowerReading; obstacle?: OffObstacle; lastReset?: string }
  | { ok: false; reason: DeviceFailure; message: string }
);

/** Why a device could not be probed: the reasons of the Reachable condition. */
export type DeviceFailure =
  | "SecretNotFound"
  | "SecretInvalid"
  | "SecretUnreadable"
  | "AddressInvalid"
  | "AddressNotAllowed"
  | "AuthenticationFailed"
  | Exclude<BmcErrorCode, "AuthFailed" | "Aborted">;

/** Credentials that a device has refused: trying them again soon locks the account. */
export interface RefusedLogin {
  address: string;
  credentials: Credentials;
}

export interface ProbeResult {
  devices: DeviceProbe[];
  /** The system UUID to pin, where this probe found one. */
  pin: NonNullable<FencingTargetStatus["identity"]> | undefined;
  refused: RefusedLogin[];
  /** That the host is off, where that was to be proven and was. */
  offProof: OffProof | undefined;
}
