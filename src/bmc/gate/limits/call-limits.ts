import { BmcError } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";

/** How many calls may wait under one key. A further call is refused. */
const WAITING_MAX = 64;

interface Calls {
  running: number;
  /** Starts the calls that wait, in the order of arrival. */
  readonly waiting: (() => void)[];
}

/**
 * Bounds the concurrent calls to one host, or to one BMC, through any driver: a semaphore for each key.
 */
export class CallLimits {
  /** Only the keys under which calls run or wait. */
  readonly #byKey = new Map<string, Calls>();

  /**
   * Runs `work` as soon as fewer than `callsMax` other calls run under `key`. The wait ends with `signal`, so it counts
   * towards the deadline of the caller.
   *
   * @param what names the call in the error.
   * @throws BmcError Busy if too many calls wait already; the reason of `signal` if it aborts before `work` starts;
   * otherwise what `work` throws.
   */
  async run<T>(key: string, callsMax: number, what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const calls = this.#byKey.get(key) ?? { running: 0, waiting: [] };
    this.#byKey.set(key, calls);
    if (calls.running < callsMax) calls.running += 1;
    else await wait(calls, what, signal);
    try {
      return await work();
    } finally {
      const next = calls.waiting.shift();
      // The next call takes over without a decrement, so that no other call can start in between.
      if (next !== undefined) next();
      else calls.running -= 1;
      if (calls.running === 0) this.#byKey.delete(key);
    }
  }
}

function wait(calls: Calls, what: string, signal: AbortSignal): Promise<void> {
  if (calls.waiting.length >= WAITING_MAX) {
    return Promise.reject(new BmcError("Busy", `${what}: ${WAITING_MAX} calls to this BMC wait already`));
  }
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(abortReason(signal));
      return;
    }
    const enter = (): void => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = (): void => {
      calls.waiting.splice(calls.waiting.indexOf(enter), 1);
      reject(abortReason(signal));
    };
    calls.waiting.push(enter);
    signal.addEventListener("abort", leave, { once: true });
  });
}
