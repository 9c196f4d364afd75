import { pino } from "pino";
import type { DestinationStream, Logger as PinoLogger } from "pino";

/** Structured log: messages are constants, what varies stands in fields. Credentials are `Secret`s and print as `[secret]`. */
export type Logger = PinoLogger;

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** Paths that are blanked even if somebody logs a whole object by mistake. */
const REDACTED = [
  "password",
  "*.password",
  "authorization",
  "*.authorization",
  "headers.Authorization",
  "token",
  "*.token",
];

/** The root logger. @param destination where lines go; standard error where absent, so that standard output stays data. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[secret]" },
    },
    destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
