import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";
import type { KdumpSource } from "./kdump-messages.ts";

/** A UDP socket that receives fence_kdump messages. It sends nothing. */
export interface KdumpSocket {
  port: number;
  subscribe: KdumpSource;
  close(): Promise<void>;
}

/**
 * Binds the socket. Node.js reads at most 32 datagrams in one turn of the event loop, and the kernel drops datagrams
 * that do not fit into its buffer: a flood costs CPU time but blocks nothing.
 *
 * @param onError called with each error after the start; the socket stays open.
 * @throws Error naming the address if it cannot be bound.
 */
export async function openKdumpSocket(
  { host, port }: { host: string; port: number },
  onError: (error: Error) => void,
): Promise<KdumpSocket> {
  const socket = createSocket(isIPv4(host) ? "udp4" : "udp6");
  try {
    socket.bind(port, host);
    await once(socket, "listening");
  } catch (error) {
    socket.close();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot listen on ${host}:${port}: ${why}`, { cause: error });
  }
  socket.on("error", onError);
  return {
    port: socket.address().port,
    subscribe: (listener) => {
      const receive = (datagram: Buffer, { address }: { address: string }): void => listener(datagram, address);
      socket.on("message", receive);
      return () => socket.off("message", receive);
    },
    close: async () => {
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
  };
}
