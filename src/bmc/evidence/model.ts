/** What a part of a host can die of, and `None` if the BMC shows no cause. */
export const CAUSE_CLASSES = ["Memory", "CPU", "PSU", "Thermal", "Disk", "PCIe", "Watchdog", "None"] as const;
export type CauseClass = (typeof CAUSE_CLASSES)[number];

/** How much an entry of a log says: 0 nothing, 1 a warning, 2 a failure, 3 what ends the system at once. */
export type Rank = 0 | 1 | 2 | 3;

/** What the text of an entry is about. `Power`: the host was switched on or off, or reset. */
export type Topic = CauseClass | "Power";

/** An entry of the log of a BMC. Its texts are plain: they hold nothing that changes how a terminal or a page looks. */
export interface BmcLogEntry {
  /** The name of the log, such as `SEL`. */
  log: string;
  /** Identifies the entry within its log. */
  id: string;
  /** When it was written, by the clock of the BMC; undefined if the entry has no time, or one that no clock shows. */
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

/** What a BMC shows of why its host died. Plain data. */
export interface BmcEvidence {
  /** By how much the clock of the BMC is ahead of our clock, in milliseconds; undefined if it shows no time. */
  clockAheadMs: number | undefined;
  /** In no order. */
  entries: readonly BmcLogEntry[];
  sensors: readonly SensorAlarm[];
  /** The end of the last reset of the host, by the clock of the BMC. */
  lastResetMs: number | undefined;
  /** Why not all was read, for the user; undefined if it was. */
  incomplete: string | undefined;
}
