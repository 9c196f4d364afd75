/** If the watch has reported nothing for longer, the view may be late by that time. */
const SILENCE_MAX_MS = 2_000;
/** A change that is observed later after it happened is late. Transition times have whole seconds, rounded down. */
const LAG_MAX_MS = 2_000;

/**
 * Whether a watched view of nodes is up to date. A watch that is delayed does not report it, and shows an earlier
 * state. A change that is observed when it happens proves that the view is up to date, and so does a version that the
 * API server names as its newest and that the view has reached. The proof ends when the watch reports nothing for
 * `SILENCE_MAX_MS`, because it may be late from then on. Events arrive in their order, so after one that is late, all
 * others may be late, too.
 *
 * In a cluster of thousands of nodes, kubelets report many times a second, and the change that made a node unhealthy is
 * itself the proof.
 */
export class ViewFreshness {
  #lastEventMs = Number.NEGATIVE_INFINITY;
  #isProven = false;

  /** Observes an event of the watch.
   *
   * @param nowMs monotonic.
   * @param lagMs how long ago the reported change happened; undefined if the event does not say.
   */
  observe(nowMs: number, lagMs: number | undefined): void {
    if (!this.isFresh(nowMs)) this.#isProven = false;
    this.#lastEventMs = nowMs;
    if (lagMs !== undefined) this.#isProven = Math.abs(lagMs) <= LAG_MAX_MS;
  }

  /**
   * Takes a proof that the view shows everything that had happened at `asOfMs`, as an event of that time would be.
   *
   * @param asOfMs monotonic.
   * @param nowMs monotonic.
   */
  prove(asOfMs: number, nowMs: number): void {
    if (nowMs - asOfMs > LAG_MAX_MS) return;
    this.#isProven = true;
    this.#lastEventMs = Math.max(this.#lastEventMs, asOfMs);
  }

  /** @param nowMs monotonic. */
  isFresh(nowMs: number): boolean {
    return this.#isProven && nowMs - this.#lastEventMs <= SILENCE_MAX_MS;
  }
}
