/** The detector asks for at most 650 s. A longer wait is a mistake, or a clock was changed. */
export const EARLY_WAIT_MAX_MS = 660_000;

/**
 * How long a host that was released early must still stay off. The end is a time of the API server's clock. That clock
 * is read once, and the wait continues on the monotonic clock: if the API server's clock is set, or another API server
 * answers, the wait becomes neither shorter nor longer. An edit of the end can only shorten it.
 */
export class EarlyWait {
  #notBeforeMs: number | undefined;
  #untilMs = Infinity;

  /** @param serverNowMs now, by the same clock as `notBeforeMs`. @param nowMs monotonic. */
  remainingMs(notBeforeMs: number, serverNowMs: number, nowMs: number): number {
    if (this.#notBeforeMs !== notBeforeMs) {
      this.#notBeforeMs = notBeforeMs;
      this.#untilMs = Math.min(this.#untilMs, nowMs + Math.min(notBeforeMs - serverNowMs, EARLY_WAIT_MAX_MS));
    }
    return Math.max(0, this.#untilMs - nowMs);
  }
}
