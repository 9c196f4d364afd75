/** A view whose watch has been silent for longer may be behind by as much. */
const SILENCE_MAX_MS = 2_000;
/** What is seen later than so after it happened came late. Transition times have whole seconds, rounded down. */
const LAG_MAX_MS = 2_000;

/**
 * Whether a watched view of nodes can be taken for how things are. A watch that is held back does not say so: it shows how
 * things were. Only a change that was seen as it happened proves that the view is up to date, and that proof ends with the
 * first silence in which the watch may have fallen behind. Events come in their order, so one that is late means that all
 * that come after it may be.
 *
 * In a cluster of thousands kubelets' reports come many a second, and the change that made a node unhealthy is the proof.
 */
export class ViewFreshness {
  #heardMs = Number.NEGATIVE_INFINITY;
  #isProven = false;

  /**
   * Takes in that an event was seen.
   *
   * @param nowMs monotonic.
   * @param lagMs how long ago the reported change happened; undefined if the event does not say.
   */
  heard(nowMs: number, lagMs: number | undefined): void {
    if (!this.isFresh(nowMs)) this.#isProven = false;
    this.#heardMs = nowMs;
    if (lagMs !== undefined) this.#isProven = Math.abs(lagMs) <= LAG_MAX_MS;
  }

  /** @param nowMs monotonic. */
  isFresh(nowMs: number): boolean {
    return this.#isProven && nowMs - this.#heardMs <= SILENCE_MAX_MS;
  }
}
