import type { Evidence } from "../../../../api/ironfence/bare-metal-remediation.ts";
import { EVIDENCE_ENTRIES_MAX, EVIDENCE_SENSORS_MAX } from "../../../../api/ironfence/bare-metal-remediation.ts";
import { ourTimeOf, usableClockAhead } from "../../../../bmc/evidence/bmc-time.ts";
import type { BmcEvidence, CauseClass, BmcLogEntry } from "../../../../bmc/evidence/model.ts";
import { toTime } from "../../../../runtime/time.ts";

/** An entry that is older than this when the node is lost does not concern the outage. */
const BEFORE_LOSS_MS = 15 * 60_000;
/** Tolerance for times of a BMC: entries and the clock of a BMC have whole seconds. */
const RESOLUTION_MS = 2_000;
/** How many of the newest entries of a log may count although they have no usable time. */
const UNTIMED_MAX = 3;
/** Entries within this time of each other have one cause, and the first of them shows it. */
const SAME_CAUSE_MS = 60_000;

/** The times of an outage, in milliseconds since the epoch. */
export interface OutageTimes {
  /** When the node last showed that it lives; undefined if that is not known. */
  lostAtMs: number | undefined;
  /** When this attempt began. Entries about power from then on may be caused by ironfence. */
  startedAtMs: number;
  /** When its power-off was ordered. All entries from then on may be caused by ironfence. */
  orderedAtMs: number;
  /** When an NMI was ordered; undefined if none can have been sent. */
  nmiAtMs?: number;
}

interface TimedEntry {
  entry: BmcLogEntry;
  atMs: number | undefined;
}

/** Finds the most probable cause of the outage in what a BMC shows. Pure. */
export function judgeEvidence(found: BmcEvidence, readAtMs: number, outage: OutageTimes): Evidence {
  const timed = found.entries.map((entry) => ({
    entry,
    atMs: ourTimeOf(entry.bmcTimeMs, found.clockAheadMs, readAtMs),
  }));
  const concerned = unique(concerning(timed, outage));
  const cause = causeAmong(concerned, outage);
  const alarm = cause === undefined ? found.sensors.find(({ topic }) => topic !== "None") : undefined;
  const resetMs = ourTimeOf(found.lastResetMs, found.clockAheadMs, readAtMs);
  const lastResetMs = resetMs !== undefined && resetMs < outage.startedAtMs ? resetMs : undefined;
  const kind: CauseClass = cause !== undefined ? classOf(cause.entry) : (alarm?.topic ?? "None");
  const message =
    cause !== undefined
      ? `${cause.entry.text}, ${whenWords(cause.atMs, outage.lostAtMs)}`
      : alarm !== undefined
        ? `${alarm.text}, when the host was powered off`
        : nothingFound(concerned, lastResetMs, outage, found.incomplete === undefined);
  const rest = concerned.filter((timed) => timed !== cause).toSorted(byWeight);
  const entries = [...(cause === undefined ? [] : [cause]), ...rest].slice(0, EVIDENCE_ENTRIES_MAX);
  const { incomplete } = found;
  const clockAheadMs = usableClockAhead(found.clockAheadMs, readAtMs);
  return {
    class: kind,
    message,
    readAt: toTime(readAtMs),
    ...(outage.lostAtMs !== undefined && { nodeLostAt: toTime(outage.lostAtMs) }),
    entries: entries.map(formatEntry),
    ...(found.sensors.length > 0 && {
      sensors: found.sensors.slice(0, EVIDENCE_SENSORS_MAX).map(({ text }) => text),
    }),
    ...(lastResetMs !== undefined && { lastReset: toTime(lastResetMs) }),
    ...(clockAheadMs !== undefined && { clockOffsetSeconds: Math.round(clockAheadMs / 1_000) }),
    ...(incomplete !== undefined && { incomplete }),
  };
}

/** The entries that may concern this outage: not too old, and not written because of our own order. */
function concerning(timed: readonly TimedEntry[], outage: OutageTimes): TimedEntry[] {
  const sinceMs = (outage.lostAtMs ?? outage.orderedAtMs) - BEFORE_LOSS_MS;
  const known = timed.filter(({ entry, atMs }) => {
    if (atMs === undefined) return false;
    return atMs >= sinceMs && atMs <= untilMs(entry, outage);
  });
  const logs = new Set(timed.map(({ entry }) => entry.log));
  const unknown = [...logs].flatMap((log) => newestUntimed(timed.filter(({ entry }) => entry.log === log)));
  return [...known, ...unknown.filter(({ entry }) => outage.nmiAtMs === undefined || !isOfNmi(entry))];
}

/** The time from which an order of ironfence may have caused such an entry. */
function untilMs(entry: BmcLogEntry, { startedAtMs, orderedAtMs, nmiAtMs }: OutageTimes): number {
  if (entry.topic === "Power") return startedAtMs - RESOLUTION_MS;
  if (nmiAtMs !== undefined && isOfNmi(entry)) return nmiAtMs - RESOLUTION_MS;
  return orderedAtMs + RESOLUTION_MS;
}

/** Whether an NMI may cause such an entry: the interrupt (IPMI 2.0, table 42-3, 13h) or the kernel panic (20h). */
function isOfNmi({ topic, text }: BmcLogEntry): boolean {
  return topic === "PCIe" || topic === "Watchdog" || /\bNMI\b/.test(text);
}

/** Entries of one log without a time, if no entry with a time is newer. The newest entry of a log comes first. */
function newestUntimed(timed: readonly TimedEntry[]): TimedEntry[] {
  const firstTimed = timed.findIndex(({ atMs }) => atMs !== undefined);
  const newest = firstTimed === -1 ? timed : timed.slice(0, firstTimed);
  return newest.slice(0, UNTIMED_MAX).filter(({ entry }) => entry.topic !== "Power");
}

/** The entry that shows the cause: among the gravest entries, the first of those that are closest to the loss. */
function causeAmong(concerned: readonly TimedEntry[], { lostAtMs, orderedAtMs }: OutageTimes): TimedEntry | undefined {
  const causes = concerned.filter(({ entry }) => entry.rank > 0 && classOf(entry) !== "None");
  const gravest = Math.max(...causes.map(gravity));
  const candidates = causes.filter((timed) => gravity(timed) === gravest);
  const distance = ({ atMs }: TimedEntry): number =>
    atMs === undefined ? Infinity : Math.floor(Math.abs(atMs - (lostAtMs ?? orderedAtMs)) / SAME_CAUSE_MS);
  return candidates.toSorted(
    (a, b) => compare(distance(a), distance(b)) || compare(a.atMs ?? Infinity, b.atMs ?? Infinity),
  )[0];
}

/**
 * How strongly an entry shows the cause. Something else has caused a watchdog reset, so other entries outrank it. An
 * entry without a time may be about another outage.
 */
function gravity({ entry, atMs }: TimedEntry): number {
  return entry.rank * 4 - (entry.topic === "Watchdog" ? 5 : 0) - (atMs === undefined ? 2 : 0);
}

function byWeight(a: TimedEntry, b: TimedEntry): number {
  return b.entry.rank - a.entry.rank || compare(b.atMs ?? -Infinity, a.atMs ?? -Infinity);
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function classOf({ topic }: BmcLogEntry): CauseClass {
  return topic === "Power" ? "None" : topic;
}

/** Removes duplicates: one event is often in several logs of a BMC. */
function unique(timed: readonly TimedEntry[]): TimedEntry[] {
  const seen = new Map<string, TimedEntry>();
  for (const one of timed) {
    const key = `${one.atMs === undefined ? "" : Math.round(one.atMs / RESOLUTION_MS)} ${one.entry.text}`;
    if (!seen.has(key)) seen.set(key, one);
  }
  return [...seen.values()];
}

function nothingFound(
  concerned: readonly TimedEntry[],
  lastResetMs: number | undefined,
  outage: OutageTimes,
  isWhole: boolean,
): string {
  const power = concerned.find(({ entry }) => entry.topic === "Power");
  const switched =
    power === undefined ? "" : `; its log says "${power.entry.text}", ${whenWords(power.atMs, outage.lostAtMs)}`;
  const isRecent = lastResetMs !== undefined && lastResetMs >= (outage.lostAtMs ?? outage.orderedAtMs) - BEFORE_LOSS_MS;
  const reset =
    isRecent && power === undefined ? `; the host was last reset ${agoWords(lastResetMs, outage.lostAtMs)}` : "";
  const unread = isWhole ? "" : " in the part of its logs that was read";
  return `The BMC shows no cause${unread}${switched}${reset}`;
}

function whenWords(atMs: number | undefined, lostAtMs: number | undefined): string {
  return atMs === undefined ? "at an unknown time" : agoWords(atMs, lostAtMs);
}

function agoWords(atMs: number, lostAtMs: number | undefined): string {
  if (lostAtMs === undefined) return `at ${toTime(atMs)}`;
  const seconds = Math.round((lostAtMs - atMs) / 1_000);
  if (seconds === 0) return "when the node was lost";
  const amount = Math.abs(seconds) < 120 ? `${Math.abs(seconds)} s` : `${Math.round(Math.abs(seconds) / 60)} min`;
  return `${amount} ${seconds > 0 ? "before" : "after"} the node was lost`;
}

const SEVERITIES = ["OK", "Warning", "Critical", "Fatal"] as const;

function formatEntry({ entry, atMs }: TimedEntry): Evidence["entries"][number] {
  return {
    log: entry.log,
    class: entry.topic,
    severity: SEVERITIES[entry.rank],
    ...(atMs !== undefined && { time: toTime(atMs) }),
    message: entry.text,
  };
}
