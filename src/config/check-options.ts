import type { Option } from "./option.ts";
import { parseTimeout } from "./parsers.ts";

const FORMATS = ["text", "json", "junit"] as const;
export type CheckFormat = (typeof FORMATS)[number];

/** The levels of results that can make `check` exit with 1. */
const FAIL_LEVELS = ["failed", "warning"] as const;
export type FailLevel = (typeof FAIL_LEVELS)[number];

/** How `check` prints its report. */
export const CHECK_OUTPUT_OPTION: Option<CheckFormat> = {
  name: "output",
  env: "IRONFENCE_OUTPUT",
  defaultText: "text",
  placeholder: "format",
  brief: "text for reading, json for scripts, junit for CI systems",
  parse: (text) => {
    // Other commands call this format `table`, and share the environment variable.
    if (text === "table") return "text";
    const format = FORMATS.find((candidate) => candidate === text);
    if (format === undefined) throw new Error(`must be one of ${FORMATS.join(", ")}`);
    return format;
  },
  propose: (partial) => FORMATS.filter((format) => format.startsWith(partial)),
};

/** Which results make `check` exit with 1. */
export const FAIL_ON_OPTION: Option<FailLevel> = {
  name: "failOn",
  env: "IRONFENCE_CHECK_FAIL_ON",
  defaultText: "failed",
  placeholder: "level",
  brief: "The lowest level that makes the command exit with 1: failed or warning",
  parse: (text) => {
    const level = FAIL_LEVELS.find((candidate) => candidate === text);
    if (level === undefined) throw new Error(`must be ${FAIL_LEVELS.join(" or ")}`);
    return level;
  },
  propose: (partial) => FAIL_LEVELS.filter((level) => level.startsWith(partial)),
};

/** How long the probes of `check --live` may take. */
export const LIVE_TIMEOUT_OPTION: Option<number> = {
  name: "liveTimeout",
  env: "IRONFENCE_CHECK_LIVE_TIMEOUT",
  defaultText: "5m",
  placeholder: "duration",
  brief: "Time limit for all probes of --live together; a target that was not probed by then fails the check",
  parse: parseTimeout,
};

/** How long `check` repeats the checks until they pass. */
export const CHECK_WAIT_OPTION: Option<number> = {
  name: "wait",
  env: "IRONFENCE_CHECK_WAIT",
  defaultText: undefined,
  placeholder: "duration",
  brief: "How long to repeat the checks until they pass, such as 5m; by default they run once",
  parse: parseTimeout,
};
