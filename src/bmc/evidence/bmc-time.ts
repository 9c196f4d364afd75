import { parseTimeMs } from "../../runtime/time.ts";

/**
 * 1 January 2004, when IPMI 2.0 was published. An earlier time comes from a clock that is not set: a BMC without a
 * battery starts in 1970.
 */
const EARLIEST_MS = 1_072_915_200_000;
/**
 * How far the time of an entry may be ahead of the clock of the BMC: the clocks of a log and of its manager may differ
 * by seconds.
 */
const AHEAD_MAX_MS = 60_000;
/** 1 January 2200. A later time comes from a broken clock, and the API server rejects times after the year 9999. */
const LATEST_MS = 7_258_118_400_000;

/**
 * Parses a time that a BMC reports. Redfish requires RFC 3339. Older BMCs omit the zone, use a space or slashes, write
 * the name of the month, or report seconds since 1970. A time without a zone is read as UTC, shifted by `offset`.
 *
 * @param offset The offset of the BMC's local time, such as `+01:00` (DSP0268, Manager.DateTimeLocalOffset).
 * @returns undefined for anything else, and for a time outside of the years 1970 to 2200.
 */
export function parseBmcTime(value: unknown, offset?: string): number | undefined {
  return usableTime(readTime(value, offset));
}

/** How far the clock of a BMC is ahead; undefined if that clock shows a time outside of the years 1970 to 2200. */
export function usableClockAhead(aheadMs: number | undefined, nowMs: number): number | undefined {
  return aheadMs === undefined || usableTime(nowMs + aheadMs) === undefined ? undefined : aheadMs;
}

function usableTime(timeMs: number | undefined): number | undefined {
  return timeMs !== undefined && timeMs >= 0 && timeMs < LATEST_MS ? timeMs : undefined;
}

function readTime(value: unknown, offset: string | undefined): number | undefined {
  if (typeof value === "number") return value > 0 ? value * 1_000 : undefined;
  if (typeof value !== "string" || value.length > 64) return undefined;
  const text = value.trim();
  const iso = ISO.exec(text);
  if (iso !== null) {
    const [, date = "", time = "", zone] = iso;
    return inZone(`${date.replaceAll("/", "-")}T${time}Z`, zone ?? offset);
  }
  const us = US.exec(text);
  if (us !== null) {
    const [, month = "", day = "", year = "", minutes = "", seconds = "00"] = us;
    return inZone(`${year}-${month}-${day}T${minutes}:${seconds}Z`, offset);
  }
  if (/^\d{9,10}$/.test(text)) return Number(text) * 1_000;
  if (!/[a-z]{3}/i.test(text)) return undefined;
  // Without " UTC" the parser would use the zone of the agent.
  return NAMED_ZONE.test(text) ? parseTimeMs(text) : inZone(`${text} UTC`, offset);
}

const ISO = /^(\d{4}[-/]\d{2}[-/]\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,]\d+)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?$/i;
const NAMED_ZONE = /\b(?:Z|UTC?|GMT|[ECMP][SD]T)\b|:\d{2}\s*[+-]\d{2}/i;
const US = /^(\d{2})\/(\d{2})\/(\d{4})\s+(\d{2}:\d{2})(?::(\d{2}))?$/;

function inZone(utc: string, zone: string | undefined): number | undefined {
  const utcMs = parseTimeMs(utc);
  return utcMs === undefined ? undefined : utcMs - zoneMs(zone);
}

function zoneMs(zone: string | undefined): number {
  const match = /^([+-])(\d{2}):?(\d{2})$/.exec(zone ?? "");
  if (match === null) return 0;
  const [, sign, hours, minutes] = match;
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/**
 * When an entry was written, by the agent's clock: the time of the entry, corrected by the present error of the BMC's
 * clock. Undefined if the BMC's clock was set after the entry was written: the entry is from before 2004 and the clock
 * is not, or the entry is in the future.
 */
export function ourTimeOf(
  bmcTimeMs: number | undefined,
  clockAheadMs: number | undefined,
  nowMs: number,
): number | undefined {
  const timeMs = usableTime(bmcTimeMs);
  const aheadMs = usableClockAhead(clockAheadMs, nowMs);
  if (timeMs === undefined || aheadMs === undefined) return undefined;
  const bmcNowMs = nowMs + aheadMs;
  if (timeMs < EARLIEST_MS && bmcNowMs >= EARLIEST_MS) return undefined;
  if (timeMs > bmcNowMs + AHEAD_MAX_MS) return undefined;
  return usableTime(timeMs - aheadMs);
}
