import { pino } from "pino";
import type { DestinationStream, Logger as PinoLogger } from "pino";
import { DeadlineError } from "../runtime/deadline.ts";

/**
 * Structured log. Messages are constants, and fields hold what varies. Credentials are `Secret`s and print as
 * `[secret]`.
 */
export type Logger = PinoLogger;

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** Paths that are redacted even if code logs a whole object by mistake. */
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
 * The root logger. Expected failures, such as a BMC that cannot be reached or a refusal of the API server, are logged
 * without their stack, because the message names the call and the cause. The levels `debug` and `trace` show the stack.
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

/** Shortens an error whose class has a code that says what happened. Other errors keep their stack. */
function briefError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof DeadlineError) return { type: error.name, message: error.message };
  if ("code" in error && "retryable" in error) {
    const nextStep = "nextStep" in error ? error.nextStep : undefined;
    return { type: error.name, code: error.code, message: error.message, ...(nextStep !== undefined && { nextStep }) };
  }
  return pino.stdSerializers.err(error);
}
