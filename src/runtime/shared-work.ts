import { abortReason, unlessAborted } from "./clock.ts";

interface Run<T> {
  result: Promise<T>;
  callers: number;
  /** Ends the run if all of its callers have left. */
  stop: AbortController;
}

/**
 * Work whose result its callers share. Each caller gets the result of a run that begins after its call, so that it is
 * as fresh as if the caller had done the work alone. One run is under way at a time, and the next one serves all
 * callers that have come meanwhile.
 */
export class SharedWork<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  /** The run that has not begun. */
  #next: Run<T> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#work = work;
  }

  /** @throws what the run throws, or the reason of `signal` if it aborts. */
  async run(signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw abortReason(signal);
    const run = (this.#next ??= this.#plan());
    run.callers += 1;
    try {
      return await unlessAborted(run.result, signal);
    } finally {
      run.callers -= 1;
      if (run.callers === 0) run.stop.abort();
      if (run.callers === 0 && this.#next === run) this.#next = undefined;
    }
  }

  #plan(): Run<T> {
    const stop = new AbortController();
    const begin = async (): Promise<T> => {
      if (stop.signal.aborted) throw abortReason(stop.signal);
      this.#next = undefined;
      return await this.#work(stop.signal);
    };
    const result = this.#last.then(begin);
    this.#last = result.catch(() => undefined);
    return { result, callers: 0, stop };
  }
}
