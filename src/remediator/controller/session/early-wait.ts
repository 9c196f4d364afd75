/** The detector asks for no more than 650 s: a wait that is longer is a mistake, or a clock was set. */
export const EARLY_WAIT_MAX_MS = 660_000;

/**
 * How long a host that was released early is kept off yet. Its end is a time of the API server's clock; from the moment
 * at which this process first sees it, the monotonic clock bounds the wait, so that no clock keeps a host off.
 */
export class EarlyWait {
  #untilMs: number | undefined;

  /** @param leftMs what is left by the API server's clock. @param nowMs monotonic. */
  remainingMs(leftMs: number, nowMs: number): number {
    this.#untilMs ??= nowMs + Math.min(leftMs, EARLY_WAIT_MAX_MS);
    return Math.max(0, Math.min(leftMs, this.#untilMs - nowMs));
  }
}
