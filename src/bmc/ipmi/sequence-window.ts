/** How far behind the newest a message may come: the network may reorder, and nothing older is an answer to what is asked now. */
const WINDOW = 16;

/**
 * Which numbered messages of a session were received (IPMI 2.0, 6.12.13). A number counts once: a datagram that comes again, or
 * from too far back, is a replay. Ask only for messages that are authentic.
 */
export class SequenceWindow {
  #newest = 0;
  /** Bit n: the message n before the newest was received. */
  #received = 0;

  /** Whether the message of this number is new; if so, it counts as received from now on. */
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
