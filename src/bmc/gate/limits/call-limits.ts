import { BmcError } from "../../interface/errors.ts";
import { Semaphore } from "../../../runtime/semaphore.ts";

/** How many calls may wait under one key. A further call is refused. */
const WAITING_MAX = 64;

interface Calls {
  readonly limit: Semaphore;
  /** How many calls run or wait. */
  count: number;
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
   * @param callsMax is the same for all calls under one key.
   * @param what names the call in the error.
   * @throws BmcError Busy if too many calls wait already; the reason of `signal` if it aborts before `work` starts;
   * otherwise what `work` throws.
   */
  async run<T>(key: string, callsMax: number, what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const calls = this.#byKey.get(key) ?? { limit: new Semaphore(callsMax), count: 0 };
    if (calls.count >= callsMax + WAITING_MAX) {
      throw new BmcError("Busy", `${what}: ${WAITING_MAX} calls to this BMC wait already`);
    }
    this.#byKey.set(key, calls);
    calls.count += 1;
    try {
      return await calls.limit.run(signal, work);
    } finally {
      calls.count -= 1;
      if (calls.count === 0) this.#byKey.delete(key);
    }
  }
}
