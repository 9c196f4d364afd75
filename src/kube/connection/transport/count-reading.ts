import type { Socket } from "node:net";
import type { buildConnector } from "undici";
import type { WorkAllowance } from "../../answers/read-budget.ts";

/**
 * The time of one read from a connection, however short it is. A TLS record of one byte takes 5 µs of the main thread
 * (measured with Node 24), so an answer of 4 MiB in such records takes 21 s.
 */
const READ_MS = 0.005;
/**
 * The time that the HTTP parser and the decoder take for one byte: 14 ns in long chunks, and up to 26 ns in chunks of
 * one byte, each of which has five bytes of framing.
 */
const BYTE_MS = 20e-6;
/**
 * The time of one session ticket. TLS 1.3 lets a server send any number of them, and they do not show up as data that
 * was read.
 */
const TICKET_MS = 0.025;

/**
 * Connects as `connect` does, and charges `work` for everything that comes over the connection. This includes bytes
 * that no caller sees, such as chunk sizes, interim answers and answers that do not end. A connection is destroyed when
 * nothing is left of `work`, and its call fails with OverBudget.
 */
export function countReading(
  connect: buildConnector.connector,
  what: string,
  work: WorkAllowance,
): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [error, socket] = result;
      // After an error undici passes no socket at all: neither a socket nor null.
      if (error === null) chargeFor(socket, what, work);
      callback(...result);
    });
}

function chargeFor(socket: Socket, what: string, work: WorkAllowance): void {
  let charged = 0;
  const charge = (ms: number): void => {
    try {
      work.charge(what, ms);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : undefined);
    }
  };
  socket.on("readable", () => {
    charge(READ_MS + (socket.bytesRead - charged) * BYTE_MS);
    charged = socket.bytesRead;
  });
  socket.on("session", () => charge(TICKET_MS));
}
