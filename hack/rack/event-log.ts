/** The events that a BMC can log, with the numbers of IPMI 2.0 (table 42-3) and the text of a vendor. */
export const LOGGED = {
  uncorrectableECC: { sensorType: 0x0c, offset: 0x1, severity: "Critical", message: "Uncorrectable ECC, DIMM B2" },
  correctableECC: { sensorType: 0x0c, offset: 0x0, severity: "Warning", message: "Correctable ECC, DIMM B2" },
  processorError: { sensorType: 0x07, offset: 0x0, severity: "Critical", message: "CPU 1 internal error (IERR)" },
  thermalTrip: { sensorType: 0x07, offset: 0x1, severity: "Critical", message: "CPU 1 thermal trip" },
  inputLost: { sensorType: 0x08, offset: 0x3, severity: "Critical", message: "Power supply 1 lost its input" },
  watchdogReset: { sensorType: 0x23, offset: 0x1, severity: "Critical", message: "Watchdog timer reset the system" },
  poweredOff: { sensorType: 0x09, offset: 0x0, severity: "OK", message: "System is powered off" },
} as const;
export type LoggedKind = keyof typeof LOGGED;
export const LOGGED_KINDS = Object.keys(LOGGED) as [LoggedKind, ...LoggedKind[]];

/** One entry of the log of a BMC. */
export interface LoggedEvent {
  /** Counted from 1. */
  id: number;
  /** Time of the BMC's clock, in milliseconds since the epoch. */
  bmcTimeMs: number;
  kind: LoggedKind;
}
