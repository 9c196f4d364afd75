/** The detector asks for at most 650 s. A longer wait is a mistake, or a clock was changed. */
export const EARLY_WAIT_MAX_MS = 660_000;

/**
 * How long a host that was released early must still stay off. The end is a time of the API server's clock. After this
 * process has seen it once, the monotonic clock bounds the wait, so that a change of a clock cannot keep a host off.
 */
export class EarlyWait {
  #untilMs: number | undefined;

  /** @param leftMs what is left by the API server's clock. @param nowMs monotonic. */
  remainingMs(leftMs: number, nowMs: number): number {
    this.#untilMs ??= nowMs + Math.min(leftMs, EARLY_WAIT_MAX_MS);
    return Math.max(0, Math.min(leftMs, this.#untilMs - nowMs));
  }
}
