import type { Option } from "./option.ts";
import { parseText, parseTimeout } from "./parsers.ts";

const UNITS: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };
/** The bundle is held in memory until it is written. */
const BYTES_MAX = 512 * 2 ** 20;
const BYTES_MIN = 64 * 2 ** 10;

/** Options of `ironfence bundle`. */
export const BUNDLE_OPTIONS = {
  file: {
    name: "file",
    env: "IRONFENCE_BUNDLE_FILE",
    defaultText: undefined,
    placeholder: "file",
    brief: "File to write, which must not exist; by default ironfence-bundle-TIME.tar.gz",
    parse: parseText,
  } satisfies Option<string>,
  maxSize: {
    name: "maxSize",
    env: "IRONFENCE_BUNDLE_MAX_SIZE",
    defaultText: "64Mi",
    placeholder: "size",
    brief: "Size limit for the contents before compression; the oldest lines of logs are cut first",
    parse: parseSize,
  } satisfies Option<number>,
  timeout: {
    name: "timeout",
    env: "IRONFENCE_BUNDLE_TIMEOUT",
    defaultText: "5m",
    placeholder: "duration",
    brief: "Time limit for the whole command; parts that are not read by then are left out",
    parse: parseTimeout,
  } satisfies Option<number>,
};

/** Parses a size such as 64Mi. @returns bytes. */
function parseSize(text: string): number {
  const [, digits = "", unit = ""] = /^(\d{1,9})(Ki|Mi|Gi)$/u.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit] ?? 0);
  if (bytes >= BYTES_MIN && bytes <= BYTES_MAX) return bytes;
  throw new Error("must be a size from 64Ki to 512Mi, such as 20Mi");
}
