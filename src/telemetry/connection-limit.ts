import type { Socket } from "node:net";

/**
 * Bounds the connections of one server. Above the limit, it closes the oldest connection of the address that has the
 * most. So a client that opens too many connections loses its own, and a probe from another address gets through.
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
    const sameAddress = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, sameAddress);
    sameAddress.add(socket);
    this.#count += 1;
    socket.once("close", () => this.#remove(address, socket));
    if (this.#count > this.#max) this.#closeOldest();
  }

  #closeOldest(): void {
    const [address, sockets] = [...this.#byAddress].reduce((most, next) => (next[1].size > most[1].size ? next : most));
    const [oldest] = sockets;
    if (oldest === undefined) return;
    // The `close` event comes later. A new connection before that must not choose the same socket again.
    this.#remove(address, oldest);
    oldest.destroy();
  }

  #remove(address: string, socket: Socket): void {
    const sockets = this.#byAddress.get(address);
    if (sockets?.delete(socket) !== true) return;
    this.#count -= 1;
    if (sockets.size === 0) this.#byAddress.delete(address);
  }
}
