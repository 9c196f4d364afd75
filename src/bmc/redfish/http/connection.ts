import { promisify } from "node:util";
import { constants, gunzip } from "node:zlib";
import { errors } from "undici";
import type { Client, Dispatcher } from "undici";
import { createHttpClient } from "./client.ts";
import type { DeviceTls } from "../../interface/device-config.ts";
import type { SecureContexts } from "../../gate/secure-contexts.ts";
import type { RedfishAnswer } from "./answer.ts";
import { EMPTY, parseJsonObject } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { SentSecrets } from "./sent-secrets.ts";
import { BmcError } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { DeadlineError } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../telemetry/logger.ts";

/** The largest answer that is read. A ComputerSystem of a large server has about 60 KiB. */
const BODY_BYTES_MAX = 1_048_576;

const unzip = promisify(gunzip);

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

export interface Call {
  method: Method;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: JsonObject;
}

export interface ConnectionOptions {
  origin: string;
  tls: DeviceTls;
  connectTimeoutMs: number;
  secureContexts: SecureContexts;
  deps: { clock: Clock; logger: Logger };
}

/** The beginning of an answer to a read. */
export interface AnswerStart {
  status: number;
  header: (name: string) => string | undefined;
  text: string;
  /** Whether the text is all of the body. */
  isWhole: boolean;
  /** How many bytes were received. */
  bytes: number;
}

/** One connection to one origin. It sends one request at a time, is opened on demand and reused. */
export class Connection {
  readonly origin: string;
  /** The end of validity of the last certificate that the service sent. */
  certificateUntilMs: number | undefined;
  readonly sentSecrets = new SentSecrets();
  readonly #options: ConnectionOptions;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(options: ConnectionOptions) {
    this.origin = options.origin;
    this.#options = options;
    this.#clock = options.deps.clock;
    this.#logger = options.deps.logger;
    this.#client = createHttpClient({
      ...options,
      bodyBytesMax: BODY_BYTES_MAX,
      onCertificate: (untilMs) => (this.certificateUntilMs = untilMs),
    });
  }

  /**
   * Sends one request, once, and reads its whole answer, with any status. Redirects are not followed.
   *
   * @throws BmcError unless a complete answer arrives in time and within bounds.
   */
  async send(call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    const what = `${call.method} ${this.origin}${call.path}`;
    // An order must not be sent if its caller aborted while the order waited.
    if (signal.aborted) throw toBmcError(abortReason(signal), what, signal);
    const startMs = this.#clock.monotonicMs();
    this.sentSecrets.note(call.headers ?? {}, call.body ?? EMPTY);
    try {
      const response = await this.#client.request({
        method: call.method,
        path: call.path,
        headers: {
          accept: "application/json",
          "odata-version": "4.0",
          "user-agent": "ironfence",
          // Some services cache for half a minute, and a cached Off is not a proof.
          ...(call.method === "GET" ? { "cache-control": "no-cache" } : {}),
          ...(call.body === undefined ? {} : { "content-type": "application/json" }),
          ...call.headers,
        },
        body: call.body === undefined ? null : JSON.stringify(call.body),
        signal,
      });
      const text = await readText(response);
      this.#logger.debug(
        {
          origin: this.origin,
          method: call.method,
          path: call.path,
          status: response.statusCode,
          elapsedMs: Math.round(this.#clock.monotonicMs() - startMs),
        },
        "redfish answer",
      );
      const body = parseBody(call.method, response.statusCode, text, what);
      const header = (name: string): string | undefined => {
        const value = response.headers[name];
        return typeof value === "string" ? value : undefined;
      };
      return { status: response.statusCode, header, body, hide: (text) => this.sentSecrets.hide(text) };
    } catch (error) {
      throw this.sentSecrets.hideIn(toBmcError(error, what, signal));
    }
  }

  /**
   * Creates another connection to the same service, with the same TLS settings. Its requests do not wait for those of
   * this connection.
   */
  sibling(): Connection {
    return new Connection(this.#options);
  }

  /**
   * Reads the first `bytesMax` bytes of a resource, once. If there are more, the connection is closed.
   *
   * @throws BmcError if there is no answer.
   */
  async readStart(
    path: string,
    headers: Readonly<Record<string, string>>,
    bytesMax: number,
    signal: AbortSignal,
  ): Promise<AnswerStart> {
    const what = `GET ${this.origin}${path}`;
    if (signal.aborted) throw toBmcError(abortReason(signal), what, signal);
    this.sentSecrets.note(headers, EMPTY);
    try {
      const response = await this.#client.request({
        method: "GET",
        path,
        headers: { accept: "application/json", "odata-version": "4.0", "user-agent": "ironfence", ...headers },
        signal,
      });
      const { bytes, isWhole } = await readBytes(response.body, bytesMax);
      const coding = response.headers["content-encoding"] ?? "identity";
      const text = coding === "gzip" ? await unzipStart(bytes) : bytes;
      const header = (name: string): string | undefined => {
        const value = response.headers[name];
        return typeof value === "string" ? value : undefined;
      };
      return { status: response.statusCode, header, text: text.toString(), isWhole, bytes: bytes.length };
    } catch (error) {
      throw this.sentSecrets.hideIn(toBmcError(error, what, signal));
    }
  }

  /** Closes the connection; requests in flight fail. */
  async destroy(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Reads a body within its bound. No request asks for gzip, but some BMCs (iLO 4) send it nevertheless. */
async function readText({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  const coding = headers["content-encoding"] ?? "identity";
  if (coding === "identity") return body.text();
  const bytes = Buffer.from(await body.arrayBuffer());
  if (bytes.length === 0) return "";
  if (coding !== "gzip") throw new BmcError("BadResponse", "the answer has a content encoding that was not requested");
  try {
    return (await unzip(bytes, { maxOutputLength: BODY_BYTES_MAX })).toString();
  } catch (cause) {
    throw new BmcError("BadResponse", "the gzip is invalid or too large", { cause });
  }
}

/** The first bytes of a body. */
async function readBytes(
  body: Dispatcher.ResponseData["body"],
  bytesMax: number,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const chunks: Buffer[] = [];
  let left = bytesMax;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
    // Leaving the loop destroys the body, and with it the connection.
    if (left < 0) return { bytes: Buffer.concat(chunks), isWhole: false };
  }
  return { bytes: Buffer.concat(chunks), isWhole: true };
}

/** Decompresses the beginning of a gzip. */
async function unzipStart(bytes: Buffer): Promise<Buffer> {
  try {
    return await unzip(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: BODY_BYTES_MAX });
  } catch (cause) {
    throw new BmcError("BadResponse", "the gzip is invalid or too large", { cause });
  }
}

/** Only the answer to a read must be JSON: the answer to an order is often empty or plain text. */
function parseBody(method: Method, status: number, text: string, what: string): JsonObject {
  if (method === "GET" && status === 200) return parseJsonObject(text, what);
  try {
    return text.trim() === "" ? EMPTY : parseJsonObject(text, what);
  } catch {
    return EMPTY;
  }
}

/** Converts the error of a failed request. */
export function toBmcError(error: unknown, what: string, signal: AbortSignal): BmcError {
  if (signal.aborted) {
    const cause = abortReason(signal);
    if (cause instanceof DeadlineError) return new BmcError("Timeout", `${what}: no answer in time`, { cause });
    return new BmcError("Aborted", `${what}: aborted`, { cause });
  }
  if (error instanceof BmcError) return new BmcError(error.code, `${what}: ${error.message}`, { cause: error });
  const code = codeOf(error);
  const words = error instanceof Error ? error.message : "unknown error";
  if (BROKEN_ANSWER.test(code) || error instanceof errors.HTTPParserError) {
    return new BmcError("BadResponse", `${what}: the answer is invalid or too large (${words})`, { cause: error });
  }
  return new BmcError("Unreachable", `${what}: ${words}`, { cause: error });
}

const BROKEN_ANSWER = /^HPE_|UND_ERR_(?:HEADERS_OVERFLOW|RES_EXCEEDED_MAX_SIZE|RES_CONTENT_LENGTH_MISMATCH|RESPONSE)/;

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** Whether an established connection was closed before the answer. Only after this failure is a read sent again. */
export function brokeOff(error: unknown): boolean {
  if (!(error instanceof BmcError) || error.code !== "Unreachable") return false;
  return /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(codeOf(error.cause));
}
