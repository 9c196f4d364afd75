import type { CallLimits } from "./call-limits.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";

/** What bounds one call of a driver. */
export interface CallBounds {
  clock: Clock;
  callLimits: CallLimits;
  /** Names the call in errors. */
  what: string;
  /** The deadline of the whole call, including its waits for other calls. */
  timeoutMs: number;
  /** The host or outlet, which gets one call at a time. */
  key: string;
  /** The device that serves many hosts or outlets, and how many calls it gets at once. */
  device: string;
  deviceCallsMax: number;
}

/**
 * Runs one call of a driver within its bounds.
 *
 * @throws BmcError Timeout at the deadline and Aborted on the abort of `signal`, otherwise what `work` throws.
 */
export async function limitedCall<T>(
  { clock, callLimits, what, timeoutMs, key, device, deviceCallsMax }: CallBounds,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  try {
    return await withDeadline(clock, what, timeoutMs, signal, (signal) =>
      callLimits.run(key, 1, what, signal, () =>
        callLimits.run(device, deviceCallsMax, what, signal, () => work(signal)),
      ),
    );
  } catch (error) {
    if (signal.aborted && !(error instanceof BmcError)) {
      throw new BmcError("Aborted", `${what} was aborted`, { cause: error });
    }
    throw error instanceof DeadlineError ? new BmcError("Timeout", error.message, { cause: error }) : error;
  }
}
