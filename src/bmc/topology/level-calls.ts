import type { PowerDriver } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import type { BmcErrorCode } from "../interface/errors.ts";

/** Runs one call on all devices of a level and waits for all of them, because each may have taken effect. */
export async function callAll<T>(
  devices: readonly PowerDriver[],
  call: (driver: PowerDriver) => Promise<T>,
  signal: AbortSignal,
): Promise<{ values: T[]; failure: BmcError | undefined }> {
  const settled = await Promise.allSettled(devices.map(call));
  const values: T[] = [];
  const failures: BmcError[] = [];
  for (const outcome of settled) {
    if (outcome.status === "fulfilled") values.push(outcome.value);
    else failures.push(levelFailure(outcome.reason, signal));
  }
  return { values, failure: failures.length === 0 ? undefined : combineFailures(failures) };
}

/** A failure after which the next level is tried. Anything else is thrown. */
export function levelFailure(error: unknown, signal: AbortSignal): BmcError {
  if (signal.aborted || !(error instanceof BmcError) || error.code === "Aborted") throw error;
  return error;
}

/**
 * After a failure with one of these codes the order may have taken effect; the likeliest come first. Such a failure
 * decides, whatever other devices answered. A gateway may answer 503 although the BMC behind it has received the order.
 */
const LOST: readonly (readonly BmcErrorCode[])[] = [["Timeout", "BadResponse"], ["Unreachable"], ["Busy"]];

/** Combines several failures into one. It may be retried if any of them may. */
export function combineFailures(failures: readonly BmcError[]): BmcError {
  const [first] = failures;
  if (first === undefined) return new BmcError("Unsupported", "the host has no power device");
  if (failures.length === 1) return first;
  const lost = LOST.flatMap((codes) => failures.filter(({ code }) => codes.includes(code)));
  const decisive = lost[0] ?? failures.find((failure) => failure.retryable) ?? first;
  const message = failures.map((failure) => failure.message).join("; ");
  return new BmcError(decisive.code, message, { cause: decisive });
}
