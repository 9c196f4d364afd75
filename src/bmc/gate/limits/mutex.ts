import { abortReason } from "../../../runtime/clock.ts";

/** Runs one piece of work at a time, in the order of arrival. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /**
   * Runs `work` when all earlier work has ended.
   *
   * @throws the reason of `signal` if it aborts before `work` starts, otherwise what `work` throws.
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    let release: () => void = () => undefined;
    this.#last = new Promise((resolve) => {
      release = resolve;
    });
    try {
      await before;
      if (signal.aborted) throw abortReason(signal);
      return await work();
    } finally {
      release();
    }
  }
}

/** One mutex for each key. A mutex exists only until the last of its users releases it. */
export class KeyedMutexes {
  readonly #byKey = new Map<string, { mutex: Mutex; users: number }>();

  /** The mutex of `key`. Call `release` when it is no longer needed. */
  acquire(key: string): { mutex: Mutex; release: () => void } {
    const entry = this.#byKey.get(key) ?? { mutex: new Mutex(), users: 0 };
    this.#byKey.set(key, entry);
    entry.users += 1;
    const release = (): void => {
      entry.users -= 1;
      if (entry.users === 0) this.#byKey.delete(key);
    };
    return { mutex: entry.mutex, release };
  }
}
