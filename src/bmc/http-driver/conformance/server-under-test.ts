import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { createUnknownCertificate } from "./unknown-certificate.ts";
import { parseStatus } from "../answers.ts";
import type { DriverAnswer, DriverStatus } from "../answers.ts";
import { DriverConnection } from "../driver-connection.ts";
import type { DriverConnectionOptions } from "../driver-connection.ts";
import { readLogin } from "../login.ts";
import type { DriverLogin } from "../login.ts";
import { HEADERS, NONCE_BYTES } from "../signature.ts";
import type { SignedRequest } from "../signature.ts";
import { SignedClient } from "../signed-client.ts";
import { SecureContexts } from "../../gate/secure-contexts.ts";
import { brokeOff } from "../../redfish/http/connection.ts";
import type { DriverAddress } from "../../interface/address.ts";
import type { DeviceConfig } from "../../interface/device-config.ts";
import { BmcError } from "../../interface/errors.ts";
import { sleep } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { Secret } from "../../../runtime/secret.ts";

/** No answer may take longer: the default deadline of a call is 15 s, and each order takes two requests. */
export const ANSWER_MS_MAX = 7_000;
const POLL_MS = 250;

/** The server has broken a rule. The message says what it did. */
export class RuleBroken extends Error {
  override readonly name = "RuleBroken";
}

/** The server that a conformance check tries: every call has a deadline and is measured. */
export class ServerUnderTest {
  readonly path: string;
  readonly clock: Clock;
  /** The slowest answer so far. */
  slowestMs = 0;
  /** Whether an answer has taken longer than `ANSWER_MS_MAX`. */
  wasLate = false;
  /** The power-off of the rule `off`, which a later rule sends again. */
  sentOff: SignedRequest | undefined;
  /** How the server authenticates its clients. */
  readonly login: DriverLogin;
  readonly #options: DriverConnectionOptions;
  readonly #connection: DriverConnection;
  readonly #client: SignedClient;
  readonly #strange: SignedClient;
  readonly #origin: string;
  readonly #device: string;
  readonly #powerTimeoutMs: number;
  readonly #signal: AbortSignal;

  /** @throws BmcError for a key or TLS settings that cannot be used. */
  constructor(
    address: DriverAddress,
    config: DeviceConfig,
    deps: { clock: Clock; powerTimeoutMs: number },
    signal: AbortSignal,
  ) {
    const { clock, powerTimeoutMs } = deps;
    const { origin, path, text } = address;
    const { connectTimeoutMs } = config.timeouts;
    const secureContexts = new SecureContexts();
    this.path = path;
    this.clock = clock;
    this.#origin = origin;
    this.#device = text;
    this.#powerTimeoutMs = powerTimeoutMs;
    this.#signal = signal;
    this.login = readLogin(origin, config);
    const { certificate } = this.login;
    this.#options = { origin, tls: config.tls, certificate, connectTimeoutMs, secureContexts };
    this.#connection = new DriverConnection(this.#options);
    this.#client = new SignedClient(this.#connection, this.login, clock);
    const key = new Secret(randomBytes(32).toString("hex"));
    this.#strange = new SignedClient(this.#connection, { ...this.login, key }, clock);
  }

  /** A request of this host with a signature that the server must accept. */
  prepare(method: SignedRequest["method"], name: string, body?: string): SignedRequest {
    return this.#client.prepare(method, `${this.path}/${name}`, body);
  }

  /** Sends a request with its own signature. */
  send(request: SignedRequest): Promise<DriverAnswer> {
    return this.#measured(request, (signal) => this.#client.send(request, signal));
  }

  /** Sends a request with the signature of another request, and the time and nonce of that one. */
  sendSignedAs(request: SignedRequest, signed: SignedRequest): Promise<DriverAnswer> {
    const headers = this.#client.headersOf(signed);
    return this.#measured(request, (signal) => this.#client.send(request, signal, headers));
  }

  /** Sends a request with its own signature as `change` returns it. */
  sendWithSignature(request: SignedRequest, change: (signature: string) => string): Promise<DriverAnswer> {
    const headers = this.#client.headersOf(request);
    const signature = change(headers[HEADERS.signature] ?? "");
    const changed = { ...headers, [HEADERS.signature]: signature };
    return this.#measured(request, (signal) => this.#client.send(request, signal, changed));
  }

  /** Sends a request without all headers of the contract, or only without the signature. */
  sendUnsigned(request: SignedRequest, without: "headers" | "signature"): Promise<DriverAnswer> {
    const { [HEADERS.signature]: _, ...others } = this.#client.headersOf(request);
    return this.#measured(request, (signal) => this.#client.send(request, signal, without === "headers" ? {} : others));
  }

  /** Sends a request that is signed with a key that the server does not have. */
  sendByOtherKey(request: SignedRequest): Promise<DriverAnswer> {
    return this.#measured(request, (signal) => this.#strange.send(request, signal));
  }

  /**
   * Sends a request over a connection with a client certificate that the server does not know, or with none.
   *
   * @returns undefined if the server closed the connection without an answer.
   */
  async sendAsStranger(request: SignedRequest, has: "certificate" | "none"): Promise<DriverAnswer | undefined> {
    const certificate = has === "certificate" ? createUnknownCertificate() : undefined;
    const connection = new DriverConnection({ ...this.#options, certificate });
    const client = new SignedClient(connection, this.login, this.clock);
    try {
      return await this.#measured(request, (signal) => client.send(request, signal));
    } catch (error) {
      if (error instanceof BmcError && (error.code === "AuthFailed" || brokeOff(error))) return undefined;
      throw error;
    } finally {
      await connection.destroy();
    }
  }

  async readStatus(): Promise<DriverStatus> {
    const request = this.prepare("GET", "status");
    return parseStatus("status", this.#device, await this.send(request));
  }

  /**
   * Reads the status over a new connection: on one that it has accepted already, a blocked server with one thread may
   * still answer.
   */
  async readStatusOverNewConnection(): Promise<DriverStatus> {
    const connection = new DriverConnection(this.#options);
    const client = new SignedClient(connection, this.login, this.clock);
    try {
      const request = this.prepare("GET", "status");
      const answer = await this.#measured(request, (signal) => client.send(request, signal));
      return parseStatus("status", this.#device, answer);
    } finally {
      await connection.destroy();
    }
  }

  /** The body of an order to the host that answers now. */
  async orderBody(): Promise<string> {
    const { systemUUID, serialNumber } = (await this.readStatus()).identity;
    return JSON.stringify({ systemUUID, serialNumber });
  }

  /** Orders the host on after a rule was broken. Best effort: a failure is not reported. */
  async orderOn(): Promise<void> {
    try {
      await this.send(this.prepare("POST", "on", await this.orderBody()));
    } catch {
      // The broken rule is reported already.
    }
  }

  /** @throws RuleBroken unless the host reads On. */
  async requireOn(after: string): Promise<void> {
    const { state } = (await this.readStatus()).reading;
    if (state !== "On") throw new RuleBroken(`${after}, the host reads ${state}`);
  }

  /**
   * Reads the state every 250 ms until it is `wanted` in eight readings in a row.
   *
   * @throws RuleBroken if the host takes longer than its power timeout, or if the state changes back.
   */
  async waitFor(wanted: "On" | "Off"): Promise<string> {
    const timeoutMs = this.#powerTimeoutMs;
    const startMs = this.clock.monotonicMs();
    const seen: string[] = [];
    let inARow = 0;
    while (this.clock.monotonicMs() - startMs < timeoutMs) {
      const { state } = (await this.readStatus()).reading;
      if (seen.at(-1) !== state) seen.push(state);
      if (state !== wanted && seen.includes(wanted)) {
        throw new RuleBroken(`the state went back: ${seen.join(", then ")}`);
      }
      inARow = state === wanted ? inARow + 1 : 0;
      // A server that shows the wanted state too early changes back within a moment.
      if (inARow >= 2 + CONFIRMATIONS) return seen.join(", then ");
      await this.pause(POLL_MS);
    }
    throw new RuleBroken(`not ${wanted} within ${Math.round(timeoutMs / 1_000)} s: ${seen.join(", then ")}`);
  }

  /**
   * Powers the host on after an order that the server should have refused, so that the next rule finds it on. Best
   * effort.
   */
  async bringBack(): Promise<void> {
    await this.orderOn();
    await this.waitFor("On").catch(() => undefined);
  }

  pause(ms: number): Promise<void> {
    return sleep(this.clock, ms, this.#signal);
  }

  /** Runs `work` while clients are connected that have sent half of a request. */
  async withSlowClients<T>(count: number, work: () => Promise<T>): Promise<T> {
    const url = new URL(this.#origin);
    const port = Number(url.port === "" ? (url.protocol === "http:" ? 80 : 443) : url.port);
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const sockets: Socket[] = [];
    try {
      for (let index = 0; index < count; index += 1) {
        const socket = connect({ host, port });
        socket.on("error", () => undefined);
        sockets.push(socket);
        // A TLS server reads this as a broken first record, and may answer it.
        socket.write("GET ");
      }
      await this.pause(POLL_MS);
      return await work();
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  }

  async close(): Promise<void> {
    await this.#connection.destroy();
  }

  async #measured(request: SignedRequest, call: (signal: AbortSignal) => Promise<DriverAnswer>): Promise<DriverAnswer> {
    const startMs = this.clock.monotonicMs();
    const what = `${request.method} ${request.path}`;
    try {
      return await withDeadline(this.clock, what, ANSWER_MS_MAX, this.#signal, call);
    } catch (error) {
      if (this.clock.monotonicMs() - startMs >= ANSWER_MS_MAX) this.wasLate = true;
      throw error;
    } finally {
      this.slowestMs = Math.max(this.slowestMs, this.clock.monotonicMs() - startMs);
    }
  }
}

/** Readings beyond the two that a fence needs. */
const CONFIRMATIONS = 6;

/** A new random nonce. */
export function freshNonce(): string {
  return randomBytes(NONCE_BYTES).toString("hex");
}
