import type { PowerDriver, PowerReading } from "./driver.ts";
import { BmcError } from "./errors.ts";
import { sleep } from "../runtime/clock.ts";
import type { Clock } from "../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../runtime/deadline.ts";

/**
 * Shortest time from one read of a state that is still to come to the next. With the read that confirms, no BMC is asked more
 * than four times in any second: the fourth comes after three of these and `CONFIRM_MS`.
 */
export const POLL_MS_MIN = 330;
/** Pause between a read that shows the state and the one that confirms it. */
const CONFIRM_MS = 20;
/** Shortest pause after any other read: a BMC that takes long to answer is not kept busy by that alone. */
const REST_MS = 100;

/** How a power state is waited for. */
export interface PowerWait {
  clock: Clock;
  /** Time from one read to the next, but for those that confirm; `POLL_MS_MIN` at least. */
  pollMs: number;
  /** After this the wait is over, proven or not. */
  timeoutMs: number;
  /** How many reads in a row must show the state. One is no proof: BMCs show a wrong one while they restart. */
  freshReads: number;
}

/** What a wait ended with. Without a proof it has the last reading, for the message and the next decision. */
export type PowerProof =
  | { proven: true; reading: PowerReading }
  | { proven: false; last: PowerReading | undefined; error: BmcError | undefined };

/**
 * Reads the power until `freshReads` reads in a row show `want`. Any other reading, and any failed one, starts the count again.
 * Failures that may pass are sat out until the time is up; one that will not (`retryable` is false) ends the wait at once.
 *
 * @throws the reason of `signal` on abort. Time running out is no exception: it is `proven: false`.
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

/** Our own deadline shows as a time-out; a defect is not hidden. */
function asBmcError(thrown: unknown): BmcError {
  if (thrown instanceof BmcError) {
    // The driver calls it an abort when it was our deadline that stopped it.
    return thrown.code === "Aborted" ? new BmcError("Timeout", thrown.message, { cause: thrown }) : thrown;
  }
  if (thrown instanceof DeadlineError) return new BmcError("Timeout", thrown.message, { cause: thrown });
  throw thrown;
}
