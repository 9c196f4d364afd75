import { randomBytes } from "node:crypto";
import type { DriverAnswer } from "./answers.ts";
import type { DriverConnection } from "./driver-connection.ts";
import type { DriverLogin } from "./login.ts";
import { HEADERS, isSigned, NONCE_BYTES, signRequest } from "./signature.ts";
import type { SignedRequest } from "./signature.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Sends the requests of one login, signs them if the login has a key, and checks that answers belong to them. */
export class SignedClient {
  readonly #connection: DriverConnection;
  readonly #login: DriverLogin;
  readonly #clock: Clock;

  constructor(connection: DriverConnection, login: DriverLogin, clock: Clock) {
    this.#connection = connection;
    this.#login = login;
    this.#clock = clock;
  }

  /** Returns a request with the present time and a new nonce. */
  prepare(method: SignedRequest["method"], path: string, body = ""): SignedRequest {
    const timeS = Math.floor(this.#clock.nowMs() / 1_000);
    return { method, path, timeS, nonce: randomBytes(NONCE_BYTES).toString("hex"), body };
  }

  /** The headers of the contract for a request. */
  headersOf(request: SignedRequest): Record<string, string> {
    const { key, keyId } = this.#login;
    return {
      [HEADERS.time]: String(request.timeS),
      [HEADERS.nonce]: request.nonce,
      ...(key !== undefined && { [HEADERS.keyId]: keyId, [HEADERS.signature]: signRequest(key, request) }),
    };
  }

  /** Sends a request, once. @throws BmcError if there is no complete answer. */
  async send(
    request: SignedRequest,
    signal: AbortSignal,
    headers: Readonly<Record<string, string>> = this.headersOf(request),
  ): Promise<DriverAnswer> {
    const { method, path, body, nonce } = request;
    const answer = await this.#connection.send({ method, path, headers, body }, signal);
    const signed = { nonce, status: answer.status, body: answer.body };
    const { key } = this.#login;
    return {
      status: answer.status,
      text: Buffer.from(answer.body).toString("utf8"),
      // Without a key, TLS authenticates the server, and the nonce shows that the answer is not an earlier one from a
      // cache.
      isProven:
        key === undefined
          ? answer.header(HEADERS.nonce) === nonce
          : isSigned(key, signed, answer.header(HEADERS.signature)),
    };
  }
}
