import { meaningfulSerial, meaningfulUuid } from "./placeholders.ts";
import { parseUuid, sameUuid } from "./uuid.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/**
 * What a BMC says of its host's power. Only `Off` is off: a host that is powering off may still write to its disks.
 */
export type PowerState = "Off" | "On" | "Changing" | "Unknown";

/** One reading of the power state, made on the wire by the call that returns it: drivers never cache it. */
export interface PowerReading {
  state: PowerState;
  /** What the BMC said literally, e.g. `PoweringOff`, for messages. */
  raw: string;
}

/** Who the host is, as its BMC reports it. Absent where the BMC does not say. */
export interface HostIdentity {
  /** SMBIOS system UUID in the textual form that the BMC prints, lower case. Its byte order varies by vendor. */
  systemUUID?: string;
  serialNumber?: string;
  /** What some vendors' tools show as the serial number, e.g. Dell's service tag (DSP0268, ComputerSystem.SKU). */
  sku?: string;
  manufacturer?: string;
  model?: string;
  /** How the device names the host, e.g. `/redfish/v1/Systems/1`. */
  device: string;
}

/**
 * Whether a host that answers after a new log-in is the one that was identified before. What is not reported any more may be
 * another host's; but some BMCs lose a part of the identity, or turn the UUID round, while their host is off, and learn a part
 * of it after POST alone.
 *
 * @returns `Unknown` where a host that is off has nothing left to compare.
 */
export function compareHosts(
  before: HostIdentity,
  now: HostIdentity,
  { isOff }: { isOff: boolean },
): "Same" | "Other" | "Unknown" {
  const verdicts = [
    compareValues(uuidOf(before), uuidOf(now), sameUuid),
    compareValues(meaningfulSerial(before.serialNumber), meaningfulSerial(now.serialNumber), (a, b) => a === b),
  ];
  if (verdicts.includes("Other") || (verdicts.includes("Gone") && !isOff)) return "Other";
  if (verdicts.includes("Same") || verdicts.every((verdict) => verdict === undefined)) return "Same";
  return isOff ? "Unknown" : "Other";
}

/** A value that is no UUID, as some BMCs have it, distinguishes hosts as a serial number does. */
function uuidOf({ systemUUID }: HostIdentity): string | undefined {
  return parseUuid(systemUUID) === undefined ? meaningfulSerial(systemUUID) : meaningfulUuid(systemUUID);
}

/** Undefined where neither has a value. */
function compareValues(
  before: string | undefined,
  now: string | undefined,
  isSame: (a: string, b: string) => boolean,
): "Same" | "Other" | "Gone" | "New" | undefined {
  if (before === undefined) return now === undefined ? undefined : "New";
  if (now === undefined) return "Gone";
  return isSame(before, now) ? "Same" : "Other";
}

/** Where a host boots from next: once from the network, or as its own boot order says. */
export type BootOverride = "NetworkOnce" | "None";

/** Which of our orders a device says that it takes. */
export interface OrderOffer {
  /** The kinds of order that it lists; undefined where it lists none, and only trying would tell. */
  listed: readonly string[] | undefined;
  /** What `forceOff` and `on` would send; undefined where nothing on the list will do. */
  off: string | undefined;
  on: string | undefined;
  /** Whether a network boot can be set for the host, as far as the device reports. */
  networkBoot: boolean;
}

/** What would keep a host from being powered off and proven off, although its device answers. */
export interface OffObstacle {
  /**
   * ChassisUnreadable: the power of a Chassis that has to be off as well cannot be read. ChassisDisagrees: it shows On next to a
   * System that shows Off. ManagerUnreadable: whether the BMC has just restarted cannot be read. OffNotOffered: the device does not
   * offer to power a running host off at once. OffNotPermitted: the account lacks the right to. PowerUnreadable: the device shows no power state that is known.
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

/**
 * One BMC (or other power device) that can fence one host. A driver knows no Kubernetes.
 *
 * Every call takes an AbortSignal and ends, at the latest, at the driver's own deadline for that call (`DeviceTimeouts`).
 * Every failure is a `BmcError`. No call is retried behind the caller's back if it changes anything: after a failed or lost
 * order the caller reads the state and decides. A call returns before its effect is complete: the proof is `readPower`.
 */
export interface PowerDriver {
  /** The address, without credentials, for messages. */
  readonly address: string;
  /**
   * When the host came out of its last reset, by the BMC's clock, as the last call that read it has shown. Absent where the
   * protocol knows no such thing (IPMI), undefined where the BMC does not say.
   */
  readonly lastReset?: string | undefined;
  /** Reads who the host is. */
  identify(signal: AbortSignal): Promise<HostIdentity>;
  /** Reads the power state freshly. */
  readPower(signal: AbortSignal): Promise<PowerReading>;
  /** Orders the host off at once, without the host's help. "It is off already" is no error. */
  forceOff(signal: AbortSignal): Promise<void>;
  /** Orders the host on. "It is on already" is no error. */
  on(signal: AbortSignal): Promise<void>;
  /** Sets where the host boots from next, or clears that. */
  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void>;
  /** Reads the boot override back: `None` when none is set. */
  readBootOverride(signal: AbortSignal): Promise<BootOverride>;
  /** Reads which orders the device says that it takes; sends none. Absent where the protocol leaves it no choice (IPMI). */
  readOffer?(signal: AbortSignal): Promise<OrderOffer>;
  /**
   * Rehearses a power-off without an order: reads what an order, and the proof of Off, would read, whatever the power is now.
   * Absent where the protocol needs nothing more than the power state (IPMI).
   */
  findOffObstacle?(signal: AbortSignal): Promise<OffObstacle | undefined>;
  /**
   * Has the BMC itself restart, for a person who asks for it: the agent never does. The host goes on as it is. A lost answer may
   * mean that the BMC was faster than its answer.
   *
   * @throws BmcError
   */
  resetBmc?(signal: AbortSignal): Promise<void>;
  /** Ends the driver's sessions and connections. Never throws; bounded by its own deadline. */
  close(): Promise<void>;
}

/** What drivers need of their process. */
export interface DeviceDeps {
  clock: Clock;
  logger: Logger;
  /**
   * Asked right before each transmission that changes something, by a process that may lose its right to: one that was
   * suspended may continue where it was before any timer shows how late it is. Without it, orders may always go out.
   */
  mayOrder?: () => boolean;
}

/** Deadlines of one device's calls. */
export interface DeviceTimeouts {
  /** Time for TCP and TLS to connect. */
  connectTimeoutMs: number;
  /** Time for one whole call, logging in included. */
  callTimeoutMs: number;
}

/** Windows that most BMCs keep: slow ones take several seconds for a first TLS handshake (docs/decisions). */
export const DEFAULT_DEVICE_TIMEOUTS: DeviceTimeouts = { connectTimeoutMs: 5_000, callTimeoutMs: 15_000 };
