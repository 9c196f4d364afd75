import { createSocket } from "node:dgram";
import type { Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { EventEmitter } from "node:events";
import { readEnvelope } from "./envelope.ts";
import type { V3Envelope } from "./envelope.ts";
import type { SnmpAddress } from "../../interface/address.ts";
import { BmcError, orderNotAllowed } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";

/** The largest datagram that is read: an answer has a dozen short values. */
const DATAGRAM_BYTES_MAX = 8_192;
/** How many of the latest requests may still be answered. */
const REQUESTS_MAX = 16;

/** Prefix of the OIDs by which a PDU reports which of its security checks failed (RFC 3414, usmStats). */
const USM_STATS = "1.3.6.1.6.3.15.1.1.";
const REFUSALS: Readonly<Record<string, { code: "AuthFailed" | "Unsupported" | "BadResponse"; why: string }>> = {
  1: { code: "Unsupported", why: "the PDU does not offer this securityLevel to the user" },
  3: { code: "AuthFailed", why: "the PDU does not know the user" },
  4: { code: "BadResponse", why: "another SNMP engine answers at this address now" },
  5: { code: "AuthFailed", why: "the PDU refused the password or the authProtocol" },
  6: { code: "AuthFailed", why: "the PDU could not decrypt: privPassword or privProtocol is wrong" },
};

/** The report that the time of a request is wrong. It is authenticated, and net-snmp sends the request again. */
const NOT_IN_TIME_WINDOW = `${USM_STATS}2.0`;

export interface SecurityLevel {
  isAuthenticated: boolean;
  isEncrypted: boolean;
}

/**
 * The socket that net-snmp uses instead of one of its own. It is connected, so that only the PDU can answer. It drops
 * answers that are less protected than their requests, because net-snmp would accept them. It sends an order only once.
 */
export class GuardedSocket extends EventEmitter {
  readonly #socket: Socket;
  readonly #level: SecurityLevel | undefined;
  readonly #sent: number[] = [];
  #engineId: string | undefined;
  #isDecrypting = false;
  #order: { what: string; mayTransmit: () => boolean; isSent: boolean } | undefined;
  #dropped: string | undefined;
  #isClosed = false;
  /** Called when the PDU or the network refuses what was sent. */
  onRefusal: (error: BmcError) => void = () => undefined;

  /** @param level The security level of SNMPv3; undefined for SNMPv2c. */
  private constructor(socket: Socket, level: SecurityLevel | undefined) {
    super();
    this.#socket = socket;
    this.#level = level;
    socket.on("message", (datagram) => this.#receive(datagram));
    socket.on("close", () => this.emit("close"));
    socket.on("error", (error) => this.onRefusal(unreachable(error)));
  }

  /**
   * Connects to the first address of the name that has a route.
   *
   * @throws BmcError Unreachable if there is none; the reason of `signal` on abort.
   */
  static async open(
    { hostname, port, text }: SnmpAddress,
    level: SecurityLevel | undefined,
    signal: AbortSignal,
  ): Promise<GuardedSocket> {
    let problem: unknown;
    try {
      for (const { address, family } of await lookup(hostname, { all: true })) {
        const socket = createSocket(family === 6 ? "udp6" : "udp4");
        try {
          await connect(socket, port, address);
        } catch (error) {
          socket.close();
          problem ??= error;
          continue;
        }
        if (!signal.aborted) return new GuardedSocket(socket, level);
        socket.close();
        break;
      }
    } catch (error) {
      problem = error;
    }
    if (signal.aborted) throw abortReason(signal);
    throw new BmcError("Unreachable", `${text}: no route to the PDU (${reasonOf(problem)})`, { cause: problem });
  }

  /** Whether the engine answers, but not to encrypted requests: some PDUs drop what they cannot decrypt. */
  get ignoresEncrypted(): boolean {
    return this.#level?.isEncrypted === true && this.#engineId !== undefined && !this.#isDecrypting;
  }

  /** Why the last answer was dropped. */
  get dropped(): string | undefined {
    return this.#dropped;
  }

  /** Until `endOrder`, the next datagram is an order. It is sent once, and only while `mayTransmit` allows it. */
  beginOrder(what: string, mayTransmit: () => boolean): void {
    this.#order = { what, mayTransmit, isSent: false };
  }

  endOrder(): void {
    this.#order = undefined;
  }

  /** Like `send` of a dgram socket. */
  send(
    datagram: Uint8Array,
    offset: number,
    length: number,
    _port: number,
    _host: string,
    done: (error: Error | null) => void,
  ): void {
    const refusal = this.#refuseOrder();
    if (refusal !== undefined || this.#isClosed) {
      done(refusal ?? new BmcError("Aborted", "the connection to the PDU was closed"));
      return;
    }
    const envelope = readEnvelope(datagram);
    if (envelope?.version === 3) this.#sent.push(envelope.messageId);
    if (this.#sent.length > REQUESTS_MAX) this.#sent.shift();
    this.#socket.send(datagram, offset, length, (error) => done(error === null ? null : unreachable(error)));
  }

  /** Like the methods of a dgram socket. They do nothing, because the driver closes its sockets. */
  ref(): void {}
  unref(): void {}

  /** Like `close` of a dgram socket. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }

  #refuseOrder(): BmcError | undefined {
    const order = this.#order;
    if (order === undefined) return undefined;
    if (order.isSent)
      return new BmcError("Busy", `${order.what}: the PDU asked for it again, and it is sent only once`);
    if (!order.mayTransmit()) return orderNotAllowed(order.what);
    order.isSent = true;
    return undefined;
  }

  #receive(datagram: Buffer): void {
    const why = datagram.length > DATAGRAM_BYTES_MAX ? "too long" : this.#whyDropped(datagram);
    if (why !== undefined) {
      this.#dropped = why;
      return;
    }
    try {
      this.emit("message", datagram);
    } catch {
      // net-snmp throws for some answers that can be parsed. The error is dropped, because it may contain keys.
      this.#dropped = "not what was asked for";
    }
  }

  #whyDropped(datagram: Buffer): string | undefined {
    const envelope = readEnvelope(datagram);
    if (envelope === undefined) return "no SNMP message";
    if (envelope.version !== 3 || this.#level === undefined) {
      return envelope.version === 1 && this.#level === undefined ? undefined : "of another SNMP version";
    }
    if (!this.#sent.includes(envelope.messageId)) return "no answer to a request";
    return this.#whyNotProtected(envelope, this.#level);
  }

  #whyNotProtected(envelope: V3Envelope, level: SecurityLevel): string | undefined {
    const { isAuthenticated, isEncrypted, engineId, report } = envelope;
    if (!isAuthenticated) {
      if (isEncrypted || report === undefined) return "not authenticated";
      if (this.#engineId === undefined) {
        // This is the answer to the discovery. Later answers have to be signed with the key for this ID.
        if (engineId === "") return "without an engine ID";
        this.#engineId = engineId;
        return undefined;
      }
      const refusal = report.startsWith(USM_STATS)
        ? REFUSALS[report.slice(USM_STATS.length).split(".", 1)[0] ?? ""]
        : undefined;
      if (refusal !== undefined) this.onRefusal(new BmcError(refusal.code, refusal.why));
      return "not authenticated";
    }
    if (engineId !== this.#engineId) return "of another SNMP engine";
    if (!isEncrypted && level.isEncrypted && report !== NOT_IN_TIME_WINDOW) return "not encrypted";
    this.#isDecrypting ||= isEncrypted;
    return undefined;
  }
}

/** Connects a socket. If there is no route, Node reports it only to the callback, whatever its type says. */
function connect(socket: Socket, port: number, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.connect(port, address, (error?: Error) => {
      socket.removeListener("error", reject);
      if (error === undefined) resolve();
      else reject(error);
    });
  });
}

function unreachable(error: Error): BmcError {
  return new BmcError("Unreachable", `the PDU is unreachable (${reasonOf(error)})`, { cause: error });
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
