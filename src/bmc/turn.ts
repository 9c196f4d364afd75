import { abortReason } from "../runtime/clock.ts";

/** Lets one piece of work at a time through, in the order of arrival. */
export class Turn {
  #last: Promise<void> = Promise.resolve();

  /** Runs `work` when its turn has come. @throws the reason of `signal` where that aborts before; else what `work` throws. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    let leave: () => void = () => undefined;
    this.#last = new Promise((resolve) => {
      leave = resolve;
    });
    try {
      await before;
      if (signal.aborted) throw abortReason(signal);
      return await work();
    } finally {
      leave();
    }
  }
}
