import type { PowerDriver, PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";

/**
 * The shortest time between reads while the state is not reached. A BMC is read at most four times in any second: of
 * five reads in a row, the last one begins at least 3 × `POLL_MS_MIN` + `CONFIRM_MS` = 1,010 ms after the first one.
 */
export const POLL_MS_MIN = 330;
/** The pause between a read that shows the state and the read that confirms it. */
const CONFIRM_MS = 20;
/** The shortest pause after any other read, so that a BMC that answers slowly is not always busy. */
const REST_MS = 100;

/** How to wait for a power state. */
export interface PowerWait {
  clock: Clock;
  /** The time between reads, except before a confirming read; at least `POLL_MS_MIN`. */
  pollMs: number;
  /** After this time the wait ends, with or without a proof. */
  timeoutMs: number;
  /**
   * How many reads in a row must show the state. One read is not a proof: BMCs show a wrong state while they restart.
   */
  freshReads: number;
}

/** The result of a wait. Without a proof it contains the last reading, for the message and the next decision. */
export type PowerProof =
  | { proven: true; reading: PowerReading }
  | { proven: false; last: PowerReading | undefined; error: BmcError | undefined };

/**
 * Reads the power until `freshReads` reads in a row show `want`. Any other reading, and any failed one, starts the
 * count again. Temporary failures are tolerated until the timeout. A permanent one (`retryable` is false) ends the wait
 * at once.
 *
 * @throws the reason of `signal` on abort. A timeout is not an exception: it is `proven: false`.
 */
export async function waitForPower(
  device: Pick<PowerDriver, "readPower">,
  want: "Off" | "On",
  { clock, pollMs, timeoutMs, freshReads }: PowerWait,
  signal: AbortSignal,
): Promise<PowerProof> {
  const endMs = clock.monotonicMs() + timeoutMs;
  let count = 0;
  let last: PowerReading | undefined;
  let error: BmcError | undefined;
  for (;;) {
    const readAtMs = clock.monotonicMs();
    const leftMs = endMs - readAtMs;
    if (leftMs <= 0) return { proven: false, last, error };
    try {
      last = await withDeadline(clock, "read of the power state", leftMs, signal, (signal) => device.readPower(signal));
      error = undefined;
      count = last.state === want ? count + 1 : 0;
      if (last.state === want && count >= freshReads) return { proven: true, reading: last };
    } catch (thrown) {
      signal.throwIfAborted();
      count = 0;
      error = asBmcError(thrown);
      if (!error.retryable) return { proven: false, last, error };
    }
    const nowMs = clock.monotonicMs();
    const pauseMs = count > 0 ? CONFIRM_MS : Math.max(readAtMs + Math.max(pollMs, POLL_MS_MIN) - nowMs, REST_MS);
    await sleep(clock, Math.min(pauseMs, Math.max(0, endMs - nowMs)), signal);
  }
}

/** Turns the deadline of a read into a `BmcError`. Any other error is a defect and is thrown. */
function asBmcError(thrown: unknown): BmcError {
  if (thrown instanceof BmcError) {
    // The driver reports an abort when the deadline of the read stops it.
    return thrown.code === "Aborted" ? new BmcError("Timeout", thrown.message, { cause: thrown }) : thrown;
  }
  if (thrown instanceof DeadlineError) return new BmcError("Timeout", thrown.message, { cause: thrown });
  throw thrown;
}
