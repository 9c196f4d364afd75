import { abortReason, sleep, unlessAborted } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";

/**
 * How long a call waits for its answer before the requests for evidence to its BMC are aborted. The BMC may answer one
 * request at a time, and a request for evidence would then delay the proof of Off.
 */
const PATIENCE_MS = 250;

/** A request for evidence was aborted, because a call took long. */
export class Withdrawn extends Error {
  override readonly name = "Withdrawn";
}

/**
 * Separates the calls to a BMC, which take precedence, from requests for evidence. A call never waits for such a
 * request. The request begins only while no call is under way, because many BMCs answer one request at a time.
 */
export class Precedence {
  readonly #clock: Clock;
  readonly #calls = new Map<string, { count: number; idle: Promise<void>; settle: () => void }>();
  readonly #onCall = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Makes a call to the BMC `key` that takes precedence. It begins at once. */
  async first<T>(key: string, call: () => Promise<T>): Promise<T> {
    const present = this.#calls.get(key);
    if (present !== undefined) present.count += 1;
    else {
      let settle: () => void = () => undefined;
      const idle = new Promise<void>((resolve) => {
        settle = resolve;
      });
      this.#calls.set(key, { count: 1, idle, settle });
      for (const notify of this.#onCall.get(key) ?? []) notify();
    }
    try {
      return await call();
    } finally {
      this.#ended(key);
    }
  }

  /**
   * Waits until no call has been under way for `quietMs`, then sends `request`, which reads evidence.
   *
   * @throws Withdrawn if a call that began later has no answer after `PATIENCE_MS`, because the request may delay it.
   */
  async besides<T>(
    key: string,
    quietMs: number,
    signal: AbortSignal,
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    do {
      for (let calls = this.#calls.get(key); calls !== undefined; calls = this.#calls.get(key)) {
        await unlessAborted(calls.idle, signal);
      }
    } while (!(await this.#staysQuiet(key, quietMs, signal)));
    if (signal.aborted) throw abortReason(signal);
    const withdrawal = new AbortController();
    const stopListening = this.#listen(key, () => void this.#withdrawLate(key, withdrawal));
    try {
      return await request(AbortSignal.any([signal, withdrawal.signal]));
    } catch (error) {
      if (withdrawal.signal.reason instanceof Withdrawn && !signal.aborted) throw withdrawal.signal.reason;
      throw error;
    } finally {
      stopListening();
      withdrawal.abort();
    }
  }

  /** Whether no call begins within `quietMs`. */
  async #staysQuiet(key: string, quietMs: number, signal: AbortSignal): Promise<boolean> {
    if (quietMs === 0) return true;
    const call = new AbortController();
    const stopListening = this.#listen(key, () => call.abort());
    try {
      await sleep(this.#clock, quietMs, AbortSignal.any([signal, call.signal]));
      return !call.signal.aborted;
    } catch (error) {
      if (signal.aborted) throw error;
      return false;
    } finally {
      stopListening();
    }
  }

  /** Calls `notify` whenever a call begins while none is under way. @returns a function that stops this. */
  #listen(key: string, notify: () => void): () => void {
    const listeners = this.#onCall.get(key) ?? new Set();
    this.#onCall.set(key, listeners);
    listeners.add(notify);
    return () => {
      listeners.delete(notify);
      if (listeners.size === 0) this.#onCall.delete(key);
    };
  }

  async #withdrawLate(key: string, withdrawal: AbortController): Promise<void> {
    const call = this.#calls.get(key);
    try {
      await sleep(this.#clock, PATIENCE_MS, withdrawal.signal);
      if (call !== undefined && this.#calls.get(key) === call) {
        withdrawal.abort(new Withdrawn(`a call of ${key} takes long`));
      }
    } catch {
      // The request has ended.
    }
  }

  #ended(key: string): void {
    const calls = this.#calls.get(key);
    if (calls === undefined) return;
    calls.count -= 1;
    if (calls.count > 0) return;
    this.#calls.delete(key);
    calls.settle();
  }
}
