/** A handle on one scheduled call. */
export interface Timer {
  /** Cancels the call. Does nothing after it has run. */
  cancel(): void;
}

/**
 * The time for all modules. The entry point creates the real clock (`system.ts`), and tests and the simulation inject a
 * virtual one. No module may read the time or start a timer in any other way.
 */
export interface Clock {
  /**
   * Wall-clock time in milliseconds since the epoch. It may jump: use it for what other machines read, never for waits.
   */
  nowMs(): number;
  /**
   * Milliseconds on a clock that never jumps and has no meaning beyond this process. Use it for deadlines and expiry.
   */
  monotonicMs(): number;
  /** Runs `callback` once, `delayMs` from now (0 or more). A pending timer keeps the process alive. */
  schedule(delayMs: number, callback: () => void): Timer;
}

/**
 * Resolves after `delayMs`; rejects with the signal's reason as soon as `signal` aborts.
 */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortReason(signal));
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(abortReason(signal));
    };
    const timer = clock.schedule(delayMs, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** @returns what `result` resolves to. @throws the signal's reason as soon as `signal` aborts. */
export async function unlessAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw abortReason(signal);
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(abortReason(signal));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** The reason of an aborted signal, as an Error in every case. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}
