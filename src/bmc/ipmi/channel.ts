import { createSocket } from "node:dgram";
import type { Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import type { IpmiAddress } from "../address.ts";
import { BmcError, orderNotAllowed } from "../errors.ts";
import { abortReason } from "../../runtime/clock.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";

/**
 * What a datagram turned out to be. One that is dropped does not end the wait: anybody can send one. Nor does one that is late:
 * the answer to a copy of something that was answered before.
 */
export type Heard<T> = { answer: T } | { dropped: string } | "late";

export interface Exchange<T> {
  /** For error messages, e.g. `ipmi://bmc-3: order off`. */
  what: string;
  /** The datagram to send; called for each transmission, because its number rises. */
  encode(): Buffer;
  hear(datagram: Buffer): Heard<T>;
  /** Asked before each transmission, the repeated ones included; absent: always. */
  mayTransmit?: (() => boolean) | undefined;
  /** How long each transmission is waited for; as many as there are waits. */
  waitsMs: readonly number[];
}

/** A UDP socket that talks to one BMC and hears nobody else. One exchange at a time. */
export class Channel {
  readonly #socket: Socket;
  readonly #clock: Clock;
  #hear: (datagram: Buffer) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;
  #closed = false;

  private constructor(socket: Socket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    socket.on("message", (datagram) => this.#hear(datagram));
    socket.on("error", (error) => this.#fail(error));
  }

  /**
   * Takes the first address of the name that there is a way to.
   *
   * @throws BmcError Unreachable where the name cannot be resolved or there is no way to any address; the reason of `signal`
   * on abort, though a name that is being looked up is waited for.
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
    throw new BmcError("Unreachable", `${text}: no way to the BMC (${reasonOf(problem)})`, { cause: problem });
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
   * Sends, waits and sends again until an answer is heard.
   *
   * @returns the answer and how often the request was sent: every one of those may have been carried out.
   * @throws BmcError Timeout without any answer, BadResponse where what came had to be dropped, Unreachable where the network
   * says that nobody listens; the reason of `signal` on abort.
   */
  exchange<T>(exchange: Exchange<T>, signal: AbortSignal): Promise<{ answer: T; transmissions: number }> {
    return new Promise((resolve, reject) => {
      let transmissions = 0;
      let dropped: string | undefined;
      let timer: Timer | undefined;
      const end = (settle: () => void): void => {
        timer?.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#hear = () => undefined;
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
        // When this process was held up, the answer may have come long ago: datagrams get one turn to be heard before the next
        // is sent.
        timer = this.#clock.schedule(waitMs, () => (timer = this.#clock.schedule(0, transmit)));
      };
      if (signal.aborted) {
        reject(abortReason(signal));
        return;
      }
      signal.addEventListener("abort", onAbort, { once: true });
      this.#hear = (datagram) => {
        const heard = exchange.hear(datagram);
        if (heard === "late") return;
        if ("answer" in heard) end(() => resolve({ answer: heard.answer, transmissions }));
        else dropped = heard.dropped;
      };
      this.#fail = (error) => {
        const message = `${exchange.what}: the BMC cannot be reached (${reasonOf(error)})`;
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

  /** Closes the socket once what was sent is on its way. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }
}

/**
 * Waits for four transmissions that grow and add up to `totalMs`: a lost datagram costs little, and a slow BMC is not buried
 * in repetitions.
 */
export function growingWaits(totalMs: number): readonly number[] {
  return [0.1, 0.2, 0.3, 0.4].map((share) => share * totalMs);
}

/**
 * Waits of an order, which add up to `totalMs` as well: later and fewer ones, since some BMCs take a second over an order, and
 * every copy may be carried out and costs a new session.
 */
export function orderWaits(totalMs: number): readonly number[] {
  return [0.2, 0.35, 0.45].map((share) => share * totalMs);
}

function noAnswer(what: string, dropped: string | undefined): BmcError {
  return dropped === undefined
    ? new BmcError("Timeout", `${what}: no answer`)
    : new BmcError("BadResponse", `${what}: no answer that can be used, at last ${dropped}`);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
