/** The classes of causes for which a host fails; `None` if the BMC shows no cause. */
export const CAUSE_CLASSES = ["Memory", "CPU", "PSU", "Thermal", "Disk", "PCIe", "Watchdog", "None"] as const;
export type CauseClass = (typeof CAUSE_CLASSES)[number];

/**
 * The severity of a log entry: 0 harmless, 1 a warning, 2 a failure, 3 a fault that stops the running system at once.
 */
export type Rank = 0 | 1 | 2 | 3;

/** What an entry is about. `Power`: the host was powered on or off, or reset. */
export type Topic = CauseClass | "Power";

/**
 * An entry of the log of a BMC. Its texts are plain: they contain nothing that a terminal or a page would interpret.
 */
export interface BmcLogEntry {
  /** The name of the log, such as `SEL`. */
  log: string;
  /** Identifies the entry within its log. */
  id: string;
  /** When it was written, by the clock of the BMC; undefined if the entry has no time, or an impossible one. */
  bmcTimeMs: number | undefined;
  topic: Topic;
  rank: Rank;
  text: string;
}

/** A sensor that is beyond a threshold, or a part that reports itself as critical. */
export interface SensorAlarm {
  topic: CauseClass;
  text: string;
}

/** What a BMC shows about why its host failed. Plain data. */
export interface BmcEvidence {
  /** How far the clock of the BMC is ahead of the agent's, in milliseconds; undefined if the BMC shows no time. */
  clockAheadMs: number | undefined;
  /** In no particular order. */
  entries: readonly BmcLogEntry[];
  sensors: readonly SensorAlarm[];
  /** The end of the last reset of the host, by the clock of the BMC. */
  lastResetMs: number | undefined;
  /** Why something was not read, for the user; undefined if everything was. */
  incomplete: string | undefined;
}
