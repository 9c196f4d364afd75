import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Client, errors } from "undici";
import type { Dispatcher } from "undici";
import { createConnector } from "./tls.ts";
import type { DeviceTls } from "./tls.ts";
import type { Answer } from "./answer.ts";
import { EMPTY, parseJsonObject } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { BmcError } from "../errors.ts";
import { abortReason } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError } from "../../runtime/deadline.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Largest answer that is read. A ComputerSystem of a big server is about 60 KiB. */
export const BODY_BYTES_MAX = 1_048_576;
/** All headers of one answer together. */
export const HEADER_BYTES_MAX = 16_384;
/** Many BMCs drop idle connections after five seconds: ours goes first, so that no order is written into a dead one. */
const IDLE_MS_MAX = 3_000;

const unzip = promisify(gunzip);

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

export interface Call {
  method: Method;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: JsonObject;
}

/** One connection to one origin: one request at a time, opened on demand and reused while it lives. */
export class Connection {
  readonly origin: string;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(options: {
    origin: string;
    tls: DeviceTls;
    connectTimeoutMs: number;
    deps: { clock: Clock; logger: Logger };
  }) {
    this.origin = options.origin;
    this.#clock = options.deps.clock;
    this.#logger = options.deps.logger;
    this.#client = new Client(options.origin, {
      connect: createConnector(options.tls, options.connectTimeoutMs),
      pipelining: 1,
      maxResponseSize: BODY_BYTES_MAX,
      maxHeaderSize: HEADER_BYTES_MAX,
      keepAliveTimeout: IDLE_MS_MAX,
      keepAliveMaxTimeout: IDLE_MS_MAX,
      // The caller's deadline rules, on the injected clock.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Sends one request, once, and reads its whole answer, whatever its status. Redirects are answers like others.
   *
   * @throws BmcError for everything that is no complete answer, in time and within bounds.
   */
  async send(call: Call, signal: AbortSignal): Promise<Answer> {
    const what = `${call.method} ${this.origin}${call.path}`;
    // An order must not go out for a caller who has given up while it waited for its turn.
    if (signal.aborted) throw toBmcError(abortReason(signal), what, signal);
    const startMs = this.#clock.monotonicMs();
    try {
      const response = await this.#client.request({
        method: call.method,
        path: call.path,
        headers: {
          accept: "application/json",
          "odata-version": "4.0",
          "user-agent": "ironfence",
          // Some services cache for half a minute; a cached Off is no proof.
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
      return { status: response.statusCode, header, body };
    } catch (error) {
      throw toBmcError(error, what, signal);
    }
  }

  /** Closes the connection; requests in flight fail. */
  async destroy(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Reads a body within its bound. Nothing asks for gzip, but some (iLO 4) send it all the same. */
async function readText({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  const coding = headers["content-encoding"] ?? "identity";
  if (coding === "identity") return body.text();
  const bytes = Buffer.from(await body.arrayBuffer());
  if (bytes.length === 0) return "";
  if (coding !== "gzip") throw new BmcError("BadResponse", "the answer is coded in a way that was not asked for");
  try {
    return (await unzip(bytes, { maxOutputLength: BODY_BYTES_MAX })).toString();
  } catch (cause) {
    throw new BmcError("BadResponse", "broken or too large a gzip", { cause });
  }
}

/** Only what a read answers with must be JSON: orders are often answered by an empty or a plain text. */
function parseBody(method: Method, status: number, text: string, what: string): JsonObject {
  if (method === "GET" && status === 200) return parseJsonObject(text, what);
  try {
    return text.trim() === "" ? EMPTY : parseJsonObject(text, what);
  } catch {
    return EMPTY;
  }
}

/** Names a failed request by the closed set of codes. */
function toBmcError(error: unknown, what: string, signal: AbortSignal): BmcError {
  if (signal.aborted) {
    const cause = abortReason(signal);
    if (cause instanceof DeadlineError) return new BmcError("Timeout", `${what}: no answer in time`, { cause });
    return new BmcError("Aborted", `${what}: aborted`, { cause });
  }
  if (error instanceof BmcError) return new BmcError(error.code, `${what}: ${error.message}`, { cause: error });
  const code = codeOf(error);
  const words = error instanceof Error ? error.message : "unknown error";
  if (BROKEN_ANSWER.test(code) || error instanceof errors.HTTPParserError) {
    return new BmcError("BadResponse", `${what}: broken or too large an answer (${words})`, { cause: error });
  }
  return new BmcError("Unreachable", `${what}: ${words}`, { cause: error });
}

const BROKEN_ANSWER = /^HPE_|UND_ERR_(?:HEADERS_OVERFLOW|RES_EXCEEDED_MAX_SIZE|RES_CONTENT_LENGTH_MISMATCH|RESPONSE)/;

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** Whether an established connection broke before the answer: the one failure after which a read is sent again. */
export function brokeOff(error: unknown): boolean {
  if (!(error instanceof BmcError) || error.code !== "Unreachable") return false;
  return /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(codeOf(error.cause));
}
