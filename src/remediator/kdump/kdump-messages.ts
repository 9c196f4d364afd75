import { isIP, SocketAddress } from "node:net";

// fence_kdump messages, which the crash kernel of a host sends while it writes a dump (docs/explanation/crash-dump.md).

/** Calls a listener with each datagram and the address of its sender. @returns a function that stops that. */
export type KdumpSource = (listener: (datagram: Buffer, from: string) => void) => () => void;

/** `unexpected`: no remediation waits for a crash dump of a node that has the address. */
export const KDUMP_RESULTS = ["accepted", "malformed", "unexpected"] as const;
export type KdumpResult = (typeof KDUMP_RESULTS)[number];

/**
 * Magic number and version of the message, each a 32-bit number in the byte order of the sender (message.h of
 * fence-agents). All hosts with a BMC that we know of are little-endian.
 */
const MESSAGE = Buffer.from("402a301b01000000", "hex");

/**
 * Delivers fence_kdump messages to the remediations that wait for a crash dump, by the address of the node. A message
 * is not authenticated, and its content is not kept.
 */
export class KdumpMessages {
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #count: (result: KdumpResult) => void;

  constructor(count: (result: KdumpResult) => void) {
    this.#count = count;
  }

  receive(datagram: Buffer, from: string): void {
    if (!MESSAGE.equals(datagram)) return this.#count("malformed");
    const listeners = this.#listeners.get(canonicalAddress(from) ?? "");
    this.#count(listeners === undefined ? "unexpected" : "accepted");
    listeners?.forEach((listener) => listener());
  }

  /** Calls `listener` for each message from one of `addresses`. @returns a function that stops that. */
  follow(addresses: readonly string[], listener: () => void): () => void {
    const followed = new Set(addresses.map(canonicalAddress).filter((address) => address !== undefined));
    for (const address of followed) {
      const listeners = this.#listeners.get(address) ?? new Set();
      this.#listeners.set(address, listeners.add(listener));
    }
    return () => {
      for (const address of followed) {
        const listeners = this.#listeners.get(address);
        listeners?.delete(listener);
        if (listeners?.size === 0) this.#listeners.delete(address);
      }
    };
  }
}

/** The canonical text of an address. An IPv4 address that is mapped to IPv6 becomes IPv4. Undefined for a name. */
function canonicalAddress(text: string): string | undefined {
  const [bare = ""] = text.split("%");
  const address = /^::ffff:([\d.]+)$/i.exec(bare)?.[1] ?? bare;
  const family = isIP(address);
  if (family === 0) return undefined;
  return new SocketAddress({ address, family: family === 4 ? "ipv4" : "ipv6" }).address;
}
