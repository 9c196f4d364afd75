/** If the watch has reported nothing for longer than this, the view may be late. */
const SILENCE_MAX_MS = 2_000;
/** A change that is observed later than this is late. Transition times have whole seconds, rounded down. */
const LAG_MAX_MS = 2_000;

/**
 * Whether a watched view of nodes is up to date. A delayed watch shows an earlier state and does not report its delay.
 * The view is proven to be up to date by a change that is observed when it happens, or by reaching the newest version
 * of the API server. The proof ends when the watch has reported nothing for `SILENCE_MAX_MS`, because it may be late
 * from then on. Events arrive in order, so after a late event, all others may be late, too.
 *
 * In a cluster of thousands of nodes, kubelets report many times a second, and the change that made a node unhealthy is
 * itself the proof.
 */
export class ViewFreshness {
  #lastEventMs = Number.NEGATIVE_INFINITY;
  #isProven = false;

  /**
   * Observes an event of the watch.
   *
   * @param nowMs monotonic.
   * @param lagMs how long ago the reported change happened; undefined if the event does not show it.
   */
  observe(nowMs: number, lagMs: number | undefined): void {
    if (!this.isFresh(nowMs)) this.#isProven = false;
    this.#lastEventMs = nowMs;
    if (lagMs !== undefined) this.#isProven = Math.abs(lagMs) <= LAG_MAX_MS;
  }

  /**
   * Adds a proof that the view shows everything that happened until `asOfMs`. It counts as an event of that time.
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
