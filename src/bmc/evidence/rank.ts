import type { Rank } from "./model.ts";
import { WORDS_MAX } from "./plain-text.ts";

/** Words of an event that has ended, or that was not a fault. */
const OVER =
  /\bde-?assert|\bresolved\b|\bcleared\b|\brestored\b|returned to|\blimit not exceeded|back to normal|\brecover(?:ed|y complete)|within (?:the )?(?:normal |expected )?range|operating (?:normally|correctly)|\b(?:was|been|is) (?:re)?inserted|\bno (?:fatal|critical|uncorrectable|error)|\bself-?test (?:pass|succe)|\bpresen(?:ce|t) detected|\blogged (?:in|out|on|off)\b|\blog[io]n\b|\blogout\b/i;
/** "Power OK de-asserted unexpectedly" is a fault, although it contains "de-asserted". */
const NOT_OVER = /unexpected/i;
/** Words of a fault that stops a running system at once. */
const FATAL =
  /uncorrect(?:able|ed)|\bun-?recoverable|non-?recoverable|\bfatal|multi-?bit|therm(?:al)?[\s_-]*trip|caterr|\bIERR|MCERR|machine[\s-]check|three[\s-]strike|3[\s-]strike|power (?:fault|loss|failure)|loss of power|run-time critical stop|kernel panic|\bAC (?:power )?(?:lost|loss)|watchdog.*(?:hard reset|power|reset|expired|cycle|timed? ?out)|watchdog timer (?:reset|expired)/i;
const NOT_FATAL = /non-?fatal|predict|redundan|correctable error (?:limit|rate|logging|threshold)/i;
const FAILED = /\bfail|\bcritical|\bfault|\bparity|\bbus error|\berror\b|\boffline\b|\blost\b|\bdown\b/i;
const CORRECTED = /(?<!un)(?<!non-)correct(?:able|ed)\b/i;

const SEVERITIES: Readonly<Record<string, Rank>> = {
  ok: 0,
  informational: 0,
  information: 0,
  info: 0,
  normal: 0,
  repaired: 1,
  warning: 1,
  caution: 1,
  minor: 1,
  noncritical: 1,
  major: 2,
  error: 2,
  critical: 2,
  emergency: 3,
  alert: 2,
  fatal: 3,
};

/**
 * The rank of an entry. Its words count for more than its severity, because Supermicro and others report every entry of
 * the SEL as OK, and some BMCs report every entry as Critical.
 *
 * @param severity The severity that the BMC reports; undefined if it reports none.
 */
export function rankOf(whole: string, severity: string | undefined): Rank {
  const text = whole.slice(0, WORDS_MAX);
  if (OVER.test(text) && !NOT_OVER.test(text)) return 0;
  const reported = severity === undefined ? undefined : SEVERITIES[severity.toLowerCase().replaceAll(/[^a-z]/g, "")];
  if (CORRECTED.test(text) && !/uncorrect/i.test(text)) return Math.min(reported ?? 1, 1) as Rank;
  if (FATAL.test(text) && !NOT_FATAL.test(text)) return 3;
  if (reported !== undefined && reported > 0) return reported;
  // If the BMC reports the entry as harmless, a word such as "error" makes it only a warning.
  return FAILED.test(text) ? (reported === 0 ? 1 : 2) : 0;
}
