/** The detector asks for at most 650 s. A longer wait is a mistake, or a clock was changed. */
export const EARLY_WAIT_MAX_MS = 660_000;

/**
 * How long a host that was released early must still stay off. The end is a time of the API server's clock. The first
 * call also sets an end on the monotonic clock, so that a change of the API server's clock cannot keep the host off.
 */
export class EarlyWait {
  #untilMs: number | undefined;

  /** @param leftMs what is left by the API server's clock. @param nowMs monotonic. */
  remainingMs(leftMs: number, nowMs: number): number {
    this.#untilMs ??= nowMs + Math.min(leftMs, EARLY_WAIT_MAX_MS);
    return Math.max(0, Math.min(leftMs, this.#untilMs - nowMs));
  }
}
