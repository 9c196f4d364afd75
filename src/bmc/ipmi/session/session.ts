import type { CipherSuiteId } from "../../interface/cipher-suites.ts";
import type { Channel, Received } from "./channel.ts";
import { encodeRequest, parseResponse } from "../packets/message.ts";
import type { Request, Response } from "../packets/message.ts";
import { parsePacket, PAYLOAD } from "../packets/rmcp.ts";
import { seal, unseal } from "../packets/sealed.ts";
import type { SessionKeys } from "../packets/sealed.ts";
import { SequenceWindow } from "./sequence-window.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The sequence number of a request has six bits. */
const REQUEST_SEQUENCES = 64;

/** A session that both sides have authenticated. One command at a time. */
export class IpmiSession {
  readonly #channel: Channel;
  readonly #clock: Clock;
  readonly #keys: SessionKeys;
  readonly #consoleSessionId: number;
  readonly #bmcSessionId: number;
  readonly #received = new SequenceWindow();
  #sent = 0;
  #requestSequence = 0;
  #receivedAtMs: number;

  constructor(
    channel: Channel,
    clock: Clock,
    options: { keys: SessionKeys; consoleSessionId: number; bmcSessionId: number },
  ) {
    this.#channel = channel;
    this.#clock = clock;
    this.#keys = options.keys;
    this.#consoleSessionId = options.consoleSessionId;
    this.#bmcSessionId = options.bmcSessionId;
    this.#receivedAtMs = clock.monotonicMs();
  }

  get suite(): CipherSuiteId {
    return this.#keys.suite.id;
  }

  /** The time since the last message of the BMC in this session, in milliseconds. */
  get silentMs(): number {
    return this.#clock.monotonicMs() - this.#receivedAtMs;
  }

  /**
   * Sends a command and waits for its answer, whatever its completion code. Each transmission may be carried out.
   *
   * @param what for error messages.
   * @param mayTransmit called before each transmission. Without it, every transmission is allowed.
   * @throws BmcError as `Channel.exchange`; the reason of `signal` on abort.
   */
  async command(
    what: string,
    request: Request,
    waitsMs: readonly number[],
    signal: AbortSignal,
    mayTransmit?: () => boolean,
  ): Promise<{ answer: Response; transmissions: number }> {
    this.#requestSequence = (this.#requestSequence + 1) % REQUEST_SEQUENCES;
    const sequence = this.#requestSequence;
    return this.#channel.exchange(
      {
        what,
        waitsMs,
        encode: () => this.#seal(request, sequence),
        receive: (it) => this.#receive(it, request, sequence),
        mayTransmit,
      },
      signal,
    );
  }

  /** Ends the session. After the answer no delayed command can be carried out. @throws as `command`. */
  async close(what: string, waitsMs: readonly number[], signal: AbortSignal): Promise<void> {
    try {
      await this.command(what, this.#closeRequest(), waitsMs, signal);
    } finally {
      this.#channel.close();
    }
  }

  /** Sends the request that ends the session once, without waiting, for a session that may be lost already. */
  abandon(): void {
    this.sendClose();
    this.#channel.close();
  }

  /** As `abandon`, but the channel stays open for another login. */
  sendClose(): void {
    this.#channel.send(this.#seal(this.#closeRequest(), 0));
  }

  #closeRequest(): Request {
    const id = Buffer.alloc(4);
    id.writeUInt32LE(this.#bmcSessionId);
    return { netFn: 0x06, command: 0x3c, data: [...id] };
  }

  /**
   * Seals a request for one transmission. Each has a new number: the BMC would drop a second one with the same number
   * as a replay.
   */
  #seal(request: Request, requestSequence: number): Buffer {
    this.#sent += 1;
    const at = { sessionId: this.#bmcSessionId, sequence: this.#sent };
    return seal(this.#keys, at, encodeRequest(request, requestSequence));
  }

  #receive(datagram: Buffer, request: Request, requestSequence: number): Received<Response> {
    const packet = parsePacket(datagram);
    if (packet?.version !== "2.0" || packet.payloadType !== PAYLOAD.ipmi) return { dropped: "another datagram" };
    if (packet.sessionId !== this.#consoleSessionId) return { dropped: "a message of another session" };
    const opened = unseal(this.#keys, datagram, packet);
    if ("rejected" in opened) return { dropped: opened.rejected };
    if (!this.#received.accept(packet.sequence)) return { dropped: "a message that came before" };
    this.#receivedAtMs = this.#clock.monotonicMs();
    const response = parseResponse(opened.message, request, requestSequence);
    if (response === undefined) return "late";
    // Wrong checksums (Supermicro) are accepted if a trailer authenticates every byte.
    const isSound = this.#keys.suite.authenticates || response.checksumsHold;
    return isSound ? { answer: response } : { dropped: "a message with a wrong checksum" };
  }
}
