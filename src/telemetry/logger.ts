import { pino } from "pino";
import type { DestinationStream, Logger as PinoLogger } from "pino";
import { DeadlineError } from "../runtime/deadline.ts";

/**
 * Structured log: messages are constants, what varies stands in fields. Credentials are `Secret`s and print as
 * `[secret]`.
 */
export type Logger = PinoLogger;

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** Paths that are blanked even if code logs a whole object by mistake. */
const REDACTED = [
  "password",
  "*.password",
  "authorization",
  "*.authorization",
  "headers.Authorization",
  "token",
  "*.token",
];

/**
 * The root logger. Failures that the world may have at any time (a BMC out of reach, an API server's refusal) are
 * logged without their stack, unless at `debug` and `trace`: the message names call and cause.
 *
 * @param destination where lines go; standard error by default, so that standard output stays data.
 */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  const detailed = level === "debug" || level === "trace";
  return pino(
    {
      level,
      ...(!detailed && { serializers: { err: briefError } }),
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: "[secret]" },
    },
    destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

/**
 * How an error stands in a line: in brief if its class gives a code that says what happened, else with its stack.
 */
function briefError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof DeadlineError) return { type: error.name, message: error.message };
  if ("code" in error && "retryable" in error) {
    const nextStep = "nextStep" in error ? error.nextStep : undefined;
    return { type: error.name, code: error.code, message: error.message, ...(nextStep !== undefined && { nextStep }) };
  }
  return pino.stdSerializers.err(error);
}
