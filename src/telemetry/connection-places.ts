import type { Socket } from "node:net";

/**
 * The places for connections of one server. Where all are taken a newcomer gets the place of the oldest connection of the address
 * that has the most: one that opens connections without end takes them from itself, and a probe from another address gets through.
 */
export class ConnectionLimit {
  readonly #max: number;
  readonly #byAddress = new Map<string, Set<Socket>>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  take(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const mine = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, mine);
    mine.add(socket);
    this.#count += 1;
    socket.once("close", () => this.#giveBack(address, socket));
    if (this.#count > this.#max) this.#evict();
  }

  #evict(): void {
    const [address, sockets] = [...this.#byAddress].reduce((most, next) => (next[1].size > most[1].size ? next : most));
    const [oldest] = sockets;
    if (oldest === undefined) return;
    // Its end is announced later: another newcomer before that must not choose it again.
    this.#giveBack(address, oldest);
    oldest.destroy();
  }

  #giveBack(address: string, socket: Socket): void {
    const sockets = this.#byAddress.get(address);
    if (sockets?.delete(socket) !== true) return;
    this.#count -= 1;
    if (sockets.size === 0) this.#byAddress.delete(address);
  }
}
