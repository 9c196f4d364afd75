import { badRequest } from "../api-error.ts";
import { isObject } from "../json.ts";
import type { JsonObject } from "../json.ts";
import { parseTimeMs, toMicroTime } from "../../../src/runtime/time.ts";

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(\d{6})(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Checks the `metav1.MicroTime`s at `paths` (dotted) and writes them in UTC, as the real server does.
 *
 * @throws ApiError 400 if a time does not have exactly six fractional digits.
 */
export function decodeMicroTimes(sent: JsonObject, kind: string, paths: readonly string[]): JsonObject {
  return paths.reduce((object, path) => decodeAt(object, kind, path.split(".")), sent);
}

function decodeAt(object: JsonObject, kind: string, path: readonly string[]): JsonObject {
  const [name = "", ...rest] = path;
  const value = object[name];
  if (value === undefined || value === null) return object;
  if (rest.length > 0) return isObject(value) ? { ...object, [name]: decodeAt(value, kind, rest) } : object;
  return { ...object, [name]: decodeMicroTime(value, kind) };
}

function decodeMicroTime(value: unknown, kind: string): string {
  const digits = typeof value === "string" ? MICRO_TIME.exec(value)?.[1] : undefined;
  const epochMs = typeof value === "string" ? parseTimeMs(value) : undefined;
  if (digits === undefined || epochMs === undefined) {
    throw badRequest(
      `${kind} in version "v1" cannot be handled as a ${kind}: parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05.000000Z07:00"`,
    );
  }
  return toMicroTime(epochMs).replace(/\.\d{6}Z$/, `.${digits}Z`);
}
