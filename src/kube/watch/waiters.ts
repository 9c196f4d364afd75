import { abortReason } from "../../runtime/clock.ts";

/** The callers that wait for the same thing. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Resolves with the next `release`. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(abortReason(signal));
        return;
      }
      const onRelease = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.delete(onRelease);
        reject(abortReason(signal));
      };
      this.#waiting.add(onRelease);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  release(): void {
    for (const onRelease of this.#waiting) onRelease();
    this.#waiting.clear();
  }
}
