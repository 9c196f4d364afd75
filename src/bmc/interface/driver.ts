import type { BmcEvidence } from "../evidence/model.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";

/**
 * The power state that a BMC reports for its host. Only `Off` is off: a host that is powering off may still write to
 * its disks.
 */
export type PowerState = "Off" | "On" | "Changing" | "Unknown";

/** One reading of the power state. The call that returns it has read it from the BMC: drivers never cache it. */
export interface PowerReading {
  state: PowerState;
  /** The literal value of the BMC, for example `PoweringOff`, for messages. */
  raw: string;
  /** For Off: a second part of the hardware also shows Off, either the Chassis or a device with another hostname. */
  agrees?: true;
  /**
   * For Off: calls have failed since the host was opened. `Same`: calls to the level that shows Off. `Other`: only
   * calls to other levels.
   */
  failed?: "Same" | "Other";
  /** For Off: the outlets that feed the host show it, and no device of the host itself does. */
  bySupply?: true;
  /**
   * For Off: how long the BMC has been up, in milliseconds, by the `LastResetTime` of its Manager (DSP0268). If there
   * are several BMCs, the shortest time. Absent if none reports it.
   */
  bmcUpMs?: number;
  /** For an outlet: what its meter shows, in the unit of the vendor. Absent without a meter. */
  load?: number;
}

/** From where a host boots next: once from the network, or according to its own boot order. */
export type BootOverride = "NetworkOnce" | "None";

/** The power orders that a device reports as supported. */
export interface SupportedOrders {
  /** The reset types that the device allows; undefined if it lists none. Then only an order shows what it supports. */
  allowedTypes: readonly string[] | undefined;
  /** What `forceOff` and `on` would send; undefined if no allowed type does it. */
  off: string | undefined;
  on: string | undefined;
  /** Whether the device reports that a network boot can be set. */
  networkBoot: boolean;
}

/** What would prevent a power-off or its proof, although the device answers. */
export interface OffObstacle {
  /**
   * ChassisUnreadable: the power of a Chassis that has to be off as well cannot be read. ChassisDisagrees: such a
   * Chassis shows On while the System shows Off. ManagerUnreadable: the Manager, which shows whether the BMC has just
   * restarted, cannot be read. OffNotOffered: the device does not support an immediate power-off of a running host.
   * OffNotPermitted: the account lacks the privilege. PowerUnreadable: the device shows no known power state.
   */
  reason:
    | "ChassisUnreadable"
    | "ChassisDisagrees"
    | "ManagerUnreadable"
    | "OffNotOffered"
    | "OffNotPermitted"
    | "PowerUnreadable";
  /** For the user, with the next step. */
  message: string;
}

/** Identifies an outlet and its PDU. All texts come from the PDU. */
export interface OutletIdentity {
  /** The serial number of the unit; if a PDU reports none, its SNMP engine ID in hexadecimal digits. */
  pdu: string;
  /** The number of the outlet on the unit; if the PDU reports none, its index in the table of the vendor. */
  outlet: string;
  /** The name that the outlet has on the PDU. */
  label?: string;
  /** The PDU measures the power of the outlet. Without the meter, an Off of such an outlet is not proven. */
  metered?: true;
}

/** What a BMC reports that may show a loss of its host's mains power. */
export interface PowerLossSigns {
  /** How long the BMC itself has been up, in milliseconds, by its own clock; absent if it does not report it. */
  bmcUpMs?: number;
  /** Whether the return of mains power was the cause of the last start of the host; absent if it reports no cause. */
  isStartedByMains?: boolean;
}

/**
 * One BMC (or other power device) that can fence one host. A driver does not know Kubernetes.
 *
 * Every call takes an AbortSignal and ends, at the latest, at the deadline of the driver for that call
 * (`DeviceTimeouts`). Every failure is a `BmcError`. A driver does not retry a call that changes something: after a
 * failed or lost order the caller reads the state and decides. A call returns before its effect is complete:
 * `readPower` is the proof.
 */
export interface PowerDriver {
  /** The address, without credentials, for messages. */
  readonly address: string;
  /**
   * The end of the last reset of the host, by the clock of the BMC, from the last call that read it. Missing if the
   * protocol does not have it (IPMI), undefined if the BMC does not report it.
   */
  readonly lastReset?: string | undefined;
  /**
   * The end of validity of the last TLS certificate that the device sent, trusted or not; for a driver server, the end
   * of the client certificate if that is earlier. Absent if the protocol has no certificates (IPMI); undefined before
   * the first handshake and for plain HTTP.
   */
  readonly certificateUntilMs?: number | undefined;
  /** Reads the identity of the host. */
  identify(signal: AbortSignal): Promise<HostIdentity>;
  /**
   * Reads which outlet of which PDU this is. Only drivers of outlets have it: `identify` of an outlet reports neither
   * UUID nor serial number, because an outlet does not know which host it feeds.
   */
  identifyOutlet?(signal: AbortSignal): Promise<OutletIdentity>;
  /** Reads the power state from the BMC. */
  readPower(signal: AbortSignal): Promise<PowerReading>;
  /** Orders an immediate power-off, without the operating system. "It is off already" is not an error. */
  forceOff(signal: AbortSignal): Promise<void>;
  /** Orders a power-on. "It is on already" is not an error. */
  on(signal: AbortSignal): Promise<void>;
  /** True: the protocol has no boot override, so this device has never set one. */
  readonly hasNoBootOverride?: true;
  /** Sets or clears the boot override. */
  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void>;
  /** Reads the boot override: `None` if none is set. */
  readBootOverride(signal: AbortSignal): Promise<BootOverride>;
  /**
   * Reads which orders the device reports as supported. Sends none. Absent if the protocol requires them all (IPMI).
   */
  readSupportedOrders?(signal: AbortSignal): Promise<SupportedOrders>;
  /**
   * Checks a power-off without an order: reads everything that an order and the proof of Off would read, whatever the
   * power is now. Missing if the protocol needs nothing more than the power state (IPMI).
   */
  findOffObstacle?(signal: AbortSignal): Promise<OffObstacle | undefined>;
  /**
   * Reads what the BMC shows about why its host failed: the last entries of its logs, and sensors beyond their
   * thresholds. Other calls of the driver do not wait for it, and may be made at the same time. Call `identify` first.
   * If something cannot be read, it returns the rest. Missing if the protocol has no logs.
   *
   * @throws BmcError Aborted
   */
  readEvidence?(signal: AbortSignal): Promise<BmcEvidence>;
  /**
   * Sends the host a diagnostic interrupt, in one transmission: a second one would abort the crash dump that the first
   * one started. The caller has read the host On. Missing if the protocol has no such order.
   *
   * @throws BmcError Unsupported if the BMC does not list it. Nothing is sent then.
   */
  sendNmi?(signal: AbortSignal): Promise<void>;
  /**
   * Interrupts the mains power of the host and of its BMC, which then does not answer for a while.
   * The caller has read the host Off. Missing if the protocol has no such order.
   *
   * @throws BmcError Unsupported if the BMC does not list it, Refused if the host is not off. Nothing is sent then.
   */
  acCycle?(signal: AbortSignal): Promise<void>;
  /**
   * Restarts the BMC itself, for a command of a user: the agent never does. The host keeps its power. A lost answer may
   * mean that the BMC restarted before it answered.
   *
   * @throws BmcError
   */
  resetBmc?(signal: AbortSignal): Promise<void>;
  /**
   * Reads signs of a loss of the host's mains power, for a command of a user. Missing if the protocol has no such
   * signs.
   */
  readPowerLossSigns?(signal: AbortSignal): Promise<PowerLossSigns>;
  /** Ends the sessions and connections of the driver. Never throws; has its own deadline. */
  close(): Promise<void>;
}

/** What drivers get from their process. */
export interface DeviceDeps {
  clock: Clock;
  logger: Logger;
  /**
   * Called right before each transmission that changes something, in a process that may lose its lease: a process that
   * was suspended may continue before a timer notices that the lease has expired. Without this function, orders may
   * always be sent.
   */
  isOrderAllowed?: () => boolean;
  /**
   * Aborts a login in progress, which otherwise runs until its own deadline while other logins at this BMC wait. The
   * BMC may then keep a session until it expires.
   */
  abandonLogin?: AbortSignal;
}

/** Deadlines for the calls of one device. */
export interface DeviceTimeouts {
  /** Time for TCP and TLS to connect. */
  connectTimeoutMs: number;
  /** Time for one whole call, including the login. */
  callTimeoutMs: number;
}

/** Deadlines that most BMCs meet: slow ones need several seconds for a first TLS handshake (docs/decisions). */
export const DEFAULT_DEVICE_TIMEOUTS: DeviceTimeouts = { connectTimeoutMs: 5_000, callTimeoutMs: 15_000 };
