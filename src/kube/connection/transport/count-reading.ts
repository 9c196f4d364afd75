import type { Socket } from "node:net";
import type { buildConnector } from "undici";
import type { WorkAllowance } from "../../answers/read-budget.ts";

/**
 * What one read of a connection takes, however short it is: a TLS record of one byte costs the main thread 5 µs
 * (measured with Node 24), so an answer of 4 MiB in such records costs 21 s.
 */
const READ_MS = 0.005;
/**
 * What a byte takes on its way through the HTTP parser into a text: 14 ns in long chunks, and up to 26 ns in chunks of
 * one byte, each of which has five more bytes around it.
 */
const BYTE_MS = 20e-6;
/**
 * What a session ticket takes. TLS 1.3 lets a server send any number of them, and no reader of the connection notices.
 */
const TICKET_MS = 0.025;

/**
 * Connects as `connect` does, and charges `work` for everything that comes over the connection. This includes what no
 * caller gets to see, such as chunk sizes, interim answers and answers that do not end. A connection is destroyed when
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
