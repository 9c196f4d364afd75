/**
 * By how many messages a received message may be behind the newest one, because the network may reorder them. An older
 * message cannot answer the present request.
 */
const WINDOW = 16;

/**
 * Remembers which numbered messages of a session were received (IPMI 2.0, 6.12.13). Each number is accepted once: a
 * datagram that is received again, or is too old, is a replay. Use it only for authenticated messages.
 */
export class SequenceWindow {
  #newest = 0;
  /** Bit n: the message n before the newest was received. */
  #received = 0;

  /** Whether the message with this number is new. If so, it counts as received from now on. */
  accept(sequence: number): boolean {
    if (sequence === 0) return false;
    const ahead = sequence - this.#newest;
    if (ahead > 0) {
      this.#received = ahead >= WINDOW ? 1 : ((this.#received << ahead) | 1) & ((1 << WINDOW) - 1);
      this.#newest = sequence;
      return true;
    }
    if (-ahead >= WINDOW) return false;
    const bit = 1 << -ahead;
    if ((this.#received & bit) !== 0) return false;
    this.#received |= bit;
    return true;
  }
}
