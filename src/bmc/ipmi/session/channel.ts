import { createSocket } from "node:dgram";
import type { Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import type { IpmiAddress } from "../../interface/address.ts";
import { BmcError, orderNotAllowed } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";

/**
 * The meaning of a received datagram. A dropped datagram does not end the wait, because any host on the network can
 * send one. A late datagram does not end it either: it answers a copy of an earlier request.
 */
export type Received<T> = { answer: T } | { dropped: string } | "late";

export interface Exchange<T> {
  /** For error messages, for example `ipmi://bmc-3: order off`. */
  what: string;
  /** The datagram to send. Called for each transmission, because each has its own sequence number. */
  encode(): Buffer;
  receive(datagram: Buffer): Received<T>;
  /** Called before each transmission, also before a repeated one. By default every transmission is allowed. */
  mayTransmit?: (() => boolean) | undefined;
  /** How long to wait for an answer after each transmission. There is one transmission for each entry. */
  waitsMs: readonly number[];
}

/** A UDP socket that is connected to one BMC. One exchange at a time. */
export class Channel {
  readonly #socket: Socket;
  readonly #clock: Clock;
  #receive: (datagram: Buffer) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;
  #closed = false;

  private constructor(socket: Socket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    socket.on("message", (datagram) => this.#receive(datagram));
    socket.on("error", (error) => this.#fail(error));
  }

  /**
   * Connects to the first address of the name that has a route.
   *
   * @throws BmcError Unreachable if the name cannot be resolved, or no address has a route; the reason of `signal` on
   * abort, but not before the name is resolved.
   */
  static async open({ hostname, port, text }: IpmiAddress, clock: Clock, signal: AbortSignal): Promise<Channel> {
    let problem: unknown;
    try {
      for (const { address, family } of await lookup(hostname, { all: true })) {
        const channel = new Channel(createSocket(family === 6 ? "udp6" : "udp4"), clock);
        try {
          await channel.#connect(port, address);
        } catch (error) {
          channel.close();
          problem ??= error;
          continue;
        }
        if (!signal.aborted) return channel;
        channel.close();
        break;
      }
    } catch (error) {
      problem = error;
    }
    if (signal.aborted) throw abortReason(signal);
    throw new BmcError("Unreachable", `${text}: no route to the BMC (${reasonOf(problem)})`, { cause: problem });
  }

  async #connect(port: number, address: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#fail = reject;
      // If there is no route, Node reports it only to this function, whatever its type says.
      this.#socket.connect(port, address, (error?: Error) => (error === undefined ? resolve() : reject(error)));
    });
    this.#fail = () => undefined;
  }

  /**
   * Sends the request, and again after each wait, until an answer is received.
   *
   * @returns the answer and the number of transmissions, each of which may have been carried out.
   * @throws BmcError Timeout without any answer, BadResponse if all answers were dropped, Unreachable if the network
   * reports that the port is closed; the reason of `signal` on abort.
   */
  exchange<T>(exchange: Exchange<T>, signal: AbortSignal): Promise<{ answer: T; transmissions: number }> {
    return new Promise((resolve, reject) => {
      let transmissions = 0;
      let dropped: string | undefined;
      let timer: Timer | undefined;
      const end = (settle: () => void): void => {
        timer?.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#receive = () => undefined;
        this.#fail = () => undefined;
        settle();
      };
      const onAbort = (): void => end(() => reject(abortReason(signal)));
      const transmit = (): void => {
        const waitMs = exchange.waitsMs[transmissions];
        if (waitMs === undefined) {
          end(() => reject(noAnswer(exchange.what, dropped)));
          return;
        }
        if (exchange.mayTransmit?.() === false) {
          end(() => reject(orderNotAllowed(exchange.what)));
          return;
        }
        transmissions += 1;
        this.send(exchange.encode());
        // If this process was suspended, the answer may be in the socket already: it is read before the next
        // transmission.
        timer = this.#clock.schedule(waitMs, () => (timer = this.#clock.schedule(0, transmit)));
      };
      if (signal.aborted) {
        reject(abortReason(signal));
        return;
      }
      signal.addEventListener("abort", onAbort, { once: true });
      this.#receive = (datagram) => {
        const received = exchange.receive(datagram);
        if (received === "late") return;
        if ("answer" in received) end(() => resolve({ answer: received.answer, transmissions }));
        else dropped = received.dropped;
      };
      this.#fail = (error) => {
        const message = `${exchange.what}: the BMC is unreachable (${reasonOf(error)})`;
        end(() => reject(new BmcError("Unreachable", message, { cause: error })));
      };
      transmit();
    });
  }

  /** Sends a datagram and does not wait for anything. */
  send(datagram: Buffer): void {
    if (this.#closed) return;
    this.#socket.send(datagram, (error) => {
      if (error !== null) this.#fail(error);
    });
  }

  /** Closes the socket after all datagrams have been sent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }
}

/**
 * The waits of four transmissions, which grow and add up to `totalMs`: a lost datagram costs little time, and a slow
 * BMC does not get many repetitions.
 */
export function growingWaits(totalMs: number): readonly number[] {
  return [0.1, 0.2, 0.3, 0.4].map((share) => share * totalMs);
}

/**
 * The waits of an order, which also add up to `totalMs`. They are longer and fewer, because some BMCs need a second for
 * an order, every copy may be carried out, and a repeated order ends its session.
 */
export function orderWaits(totalMs: number): readonly number[] {
  return [0.2, 0.35, 0.45].map((share) => share * totalMs);
}

function noAnswer(what: string, dropped: string | undefined): BmcError {
  return dropped === undefined
    ? new BmcError("Timeout", `${what}: no answer`)
    : new BmcError("BadResponse", `${what}: no usable answer; the last one was ${dropped}`);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
