import { BmcError } from "./errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { abortReason } from "../runtime/clock.ts";

/** Calls that may wait for one place; a further one is refused. */
const WAITING_MAX = 64;

interface Place {
  running: number;
  /** Lets those that wait go on, in the order of arrival. */
  readonly waiting: (() => void)[];
}

/** Keeps calls to one host, or to one BMC, from overlapping more than it can bear, whichever driver they come from. */
export class CallLimits {
  /** Only those that are in use or waited for. */
  readonly #places = new Map<string, Place>();

  /**
   * Runs `work` as soon as fewer than `callsMax` others run under `key`. Its wait ends with `signal`, so it counts in the
   * caller's deadline.
   *
   * @param what names the call in the error.
   * @throws BmcError Busy where too many wait already; the reason of `signal` where that aborts before; else what `work` throws.
   */
  async run<T>(key: string, callsMax: number, what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const place = this.#places.get(key) ?? { running: 0, waiting: [] };
    this.#places.set(key, place);
    if (place.running < callsMax) place.running += 1;
    else await wait(place, what, signal);
    try {
      return await work();
    } finally {
      const next = place.waiting.shift();
      // Whoever waits takes the place over as it is; nobody can slip in between.
      if (next !== undefined) next();
      else place.running -= 1;
      if (place.running === 0) this.#places.delete(key);
    }
  }
}

function wait(place: Place, what: string, signal: AbortSignal): Promise<void> {
  if (place.waiting.length >= WAITING_MAX) {
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
      place.waiting.splice(place.waiting.indexOf(enter), 1);
      reject(abortReason(signal));
    };
    place.waiting.push(enter);
    signal.addEventListener("abort", leave, { once: true });
  });
}

/** One for each clock: a process has one, and each simulation its own. */
const LIMITS = new WeakMap<Clock, CallLimits>();

/** The limits that all drivers of this process share. */
export function callLimitsOn(clock: Clock): CallLimits {
  const limits = LIMITS.get(clock) ?? new CallLimits();
  LIMITS.set(clock, limits);
  return limits;
}
