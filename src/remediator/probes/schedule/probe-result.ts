import type { FencingTargetStatus, OffProof } from "../../../api/ironfence/fencing-target.ts";
import type { HostIdentity } from "../../../bmc/identity/host-identity.ts";
import type { OffObstacle, OutletIdentity, PowerReading } from "../../../bmc/interface/driver.ts";
import type { BmcErrorCode } from "../../../bmc/interface/errors.ts";
import type { BmcCredentials } from "../../../bmc/interface/credentials.ts";

/** What one device answered. */
export type DeviceProbe = {
  address: string;
  level: number;
  /** Position in spec.devices. */
  index: number;
  /** The time until which its TLS certificate is valid, trusted or not. */
  certificateUntilMs?: number;
} & (
  | {
      ok: true;
      identity: HostIdentity;
      reading: PowerReading;
      obstacle?: OffObstacle;
      lastReset?: string;
      /** Set for an outlet, which has no identity of a host. */
      outlet?: OutletIdentity;
    }
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

/** Credentials that a device has refused. Another try soon after would lock the account. */
export interface RefusedLogin {
  address: string;
  credentials: BmcCredentials;
}

export interface ProbeResult {
  devices: DeviceProbe[];
  /** The system UUID to pin, if this probe found one. */
  pin: NonNullable<FencingTargetStatus["identity"]> | undefined;
  refused: RefusedLogin[];
  /** The proof that the host is off, if one was requested and succeeded. */
  offProof: OffProof | undefined;
}
