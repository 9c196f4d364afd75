/** Electrical state of a host. Only `Off` is off: while `PoweringOff` its disks may still be written to. */
export type SimulatedPower = "On" | "PoweringOff" | "Off" | "PoweringOn";

/**
 * What runs on a host. down: nothing. booting: firmware and start of the OS. installing: a network boot writes the disk
 * again. running: the OS works. dumping: only the crash kernel runs, and writes a dump. hung: the OS is frozen, but
 * pending writes still reach the disks. noBootDevice: the firmware found no boot device.
 */
export type OsState = "down" | "booting" | "installing" | "running" | "dumping" | "hung" | "noBootDevice";

/** Power orders that a BMC can give, by their Redfish `ResetType` names. */
export const POWER_ORDERS = ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "Nmi"] as const;
export type PowerOrderType = (typeof POWER_ORDERS)[number];

/**
 * Started: the change has begun. NoChange: the host was already in that state. Refused: not possible in the present
 * state.
 */
export type OrderOutcome = "Started" | "NoChange" | "Refused";

/** One power order as the host received it. */
export interface PowerOrder {
  /** Wall-clock time, milliseconds since the epoch. */
  atMs: number;
  type: PowerOrderType;
  outcome: OrderOutcome;
}

/** One thing that really happened in the rack, whatever BMCs report. */
export type RackEvent = {
  /** Wall-clock time, milliseconds since the epoch. */
  atMs: number;
  host: string;
} & RackEventDetail;

export type RackEventDetail =
  | { type: "powerChanged"; power: SimulatedPower }
  | { type: "ordered"; order: PowerOrderType; outcome: OrderOutcome }
  | { type: "booted"; bootID: string }
  | { type: "bootFailed" }
  | { type: "reinstalled"; machineID: string }
  | { type: "crashed" }
  | { type: "hung" }
  | { type: "resumed" }
  | { type: "restarting" }
  | { type: "diskFailed" }
  | { type: "bmcRestarted" };
