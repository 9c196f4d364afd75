import type { Clock } from "./clock.ts";
import { abortReason } from "./clock.ts";

/** Thrown when a call does not end within its time. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  readonly timeoutMs: number;
  constructor(what: string, timeoutMs: number) {
    super(`${what} did not end within ${Math.round(timeoutMs)} ms`);
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Runs `work` with a signal that aborts when `signal` does or when `timeoutMs` have passed, whichever comes first. The
 * result settles at that time at the latest, even if `work` ignores its signal.
 *
 * @param what names the call in the error, for example `GET https://bmc-3/redfish/v1`.
 * @throws DeadlineError at the deadline; the reason of `signal` on abort; else what `work` throws.
 */
export async function withDeadline<T>(
  clock: Clock,
  what: string,
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (signal.aborted) throw abortReason(signal);
  const controller = new AbortController();
  let onAbort: () => void = () => undefined;
  const stopped = new Promise<never>((_resolve, reject) => {
    controller.signal.addEventListener("abort", () => reject(abortReason(controller.signal)), { once: true });
  });
  // If `work` wins the race below, a later abort must not become an unhandled rejection.
  stopped.catch(() => undefined);
  const timer = clock.schedule(timeoutMs, () => controller.abort(new DeadlineError(what, timeoutMs)));
  onAbort = () => controller.abort(abortReason(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work(controller.signal), stopped]);
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
