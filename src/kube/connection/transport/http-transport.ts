import type { Pool } from "undici";
import type { Dispatcher } from "undici";
import type { Clock } from "../../../runtime/clock.ts";
import { abortReason } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { CredentialCache } from "../credentials/credential-cache.ts";
import { KubeError, isKubeError } from "../../errors.ts";
import { refuseLocalHost } from "./local-addresses.ts";
import type { KubeTransport, Lane, TransportRequest, TransportResponse, TransportStream } from "../../transport.ts";
import type { ClusterAccess, Credentials, TlsMaterial } from "../credentials/cluster-access.ts";
import type { LanePoolsOptions } from "./lane-pools.ts";
import { closedError, LanePools } from "./lane-pools.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

/**
 * Bound of an answer that is read whole. A page of 100 nodes, each with 50 images and every condition, is 3 MiB; etcd
 * holds no object above 1.5 MiB.
 */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** The same of a workload cluster, whose API server is not trusted, and of which there may be a hundred. */
export const WORKLOAD_BODY_BYTES_MAX = 4 * 1024 * 1024;

/** How much room an answer gets at first: most are smaller. */
const BODY_BYTES_FIRST = 16 * 1024;

const USER_AGENT = "ironfence";

export interface HttpTransportOptions extends LanePoolsOptions {
  /** Larger answers are cut off. */
  bodyBytesMax: number;
}

/**
 * A transport over HTTP to `cluster`, with credentials that it keeps fresh. Nothing is connected before the first call.
 *
 * @param options 64 MiB, at any address, by default.
 */
export function createHttpTransport(
  cluster: ClusterAccess,
  deps: { clock: Clock },
  options: HttpTransportOptions = { bodyBytesMax: BODY_BYTES_MAX, allowLocal: true },
): KubeTransport {
  return new HttpTransport(cluster, deps.clock, options);
}

class HttpTransport implements KubeTransport {
  readonly #clock: Clock;
  readonly #origin: string;
  /** Of a server behind a path, for example `/k8s/clusters/c-1`; mostly empty. */
  readonly #pathPrefix: string;
  readonly #credentials: CredentialCache;
  readonly #options: HttpTransportOptions;
  #lanes: LanePools | undefined;
  /** Pools of older certificates whose last calls have not ended. */
  readonly #retired = new Set<LanePools>();
  #closed = false;

  constructor(cluster: ClusterAccess, clock: Clock, options: HttpTransportOptions) {
    const url = new URL(cluster.server);
    this.#options = options;
    this.#clock = clock;
    this.#origin = url.origin;
    this.#pathPrefix = withoutTrailingSlashes(url.pathname);
    this.#credentials = new CredentialCache(cluster, clock);
  }

  send(request: TransportRequest, signal: AbortSignal): Promise<TransportResponse> {
    const what = this.#describe(request);
    return this.#asKubeErrors(what, signal, () =>
      withDeadline(this.#clock, what, request.timeoutMs, signal, async (signal) => {
        const answer = await this.#authenticated(request, signal);
        return {
          status: answer.statusCode,
          headers: lowerCase(answer.headers),
          body: await readBody(what, answer.body, this.#options.bodyBytesMax),
        };
      }),
    );
  }

  async stream(request: TransportRequest, signal: AbortSignal): Promise<TransportStream> {
    const what = this.#describe(request);
    // The deadline is for the status line alone, so the exchange itself hangs on a signal that outlives it.
    const exchange = new AbortController();
    const onAbort = (): void => exchange.abort(abortReason(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    const release = (): void => signal.removeEventListener("abort", onAbort);
    try {
      const answer = await this.#asKubeErrors(what, signal, () =>
        withDeadline(this.#clock, what, request.timeoutMs, signal, () => this.#authenticated(request, exchange.signal)),
      );
      const body = this.#chunks(what, answer.body, signal, release);
      return { status: answer.statusCode, headers: lowerCase(answer.headers), body };
    } catch (error) {
      release();
      exchange.abort(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const all = this.#lanes === undefined ? [...this.#retired] : [...this.#retired, this.#lanes];
    await Promise.all(all.map((lanes) => lanes.destroy()));
  }

  /** Sends `request`, and again with fresh credentials if the server refuses the present ones (401: it did nothing). */
  async #authenticated(request: TransportRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const credentials = await this.#credentials.current();
    const answer = await this.#exchange(request, credentials, signal);
    if (answer.statusCode !== 401) return answer;
    const fresh = await this.#credentials.replacementFor(credentials);
    if (fresh === undefined) return answer;
    await answer.body.dump();
    return await this.#exchange(request, fresh, signal);
  }

  #exchange(
    request: TransportRequest,
    credentials: Credentials,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    if (this.#closed) throw closedError();
    if (!this.#options.allowLocal) refuseLocalHost(new URL(this.#origin));
    return this.#poolOf(request.lane, credentials.tls).request({
      method: request.method,
      path: this.#pathPrefix + request.path,
      headers: {
        accept: "application/json",
        "user-agent": USER_AGENT,
        ...(request.body !== undefined && { "content-type": request.contentType ?? "application/json" }),
        ...credentials.headers,
      },
      body: request.body ?? null,
      // After a DELETE with a body, undici closes the connection, because some servers do not expect a body. The API
      // server takes preconditions in it, and a new TLS connection for each deletion would cost more than the deletion.
      reset: false,
      signal,
    });
  }

  /** New certificates mean new connections; those in use end by themselves when their calls do. */
  #poolOf(lane: Lane, tls: TlsMaterial): Pool {
    if (this.#lanes === undefined || !this.#lanes.serves(tls)) {
      if (this.#lanes !== undefined) this.#retire(this.#lanes);
      this.#lanes = new LanePools(this.#origin, tls, this.#options);
    }
    return this.#lanes.pool(lane);
  }

  #retire(lanes: LanePools): void {
    const forget = (): boolean => this.#retired.delete(lanes);
    this.#retired.add(lanes);
    lanes.drain().then(forget, forget);
  }

  async *#chunks(
    what: string,
    body: Dispatcher.ResponseData["body"],
    signal: AbortSignal,
    release: () => void,
  ): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body) yield decoder.decode(chunk, { stream: true });
    } catch (error) {
      throw this.#kubeError(what, error, signal);
    } finally {
      release();
      body.destroy();
    }
  }

  async #asKubeErrors<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#kubeError(what, error, signal);
    }
  }

  #kubeError(what: string, error: unknown, signal: AbortSignal): KubeError {
    if (isKubeError(error)) return error;
    if (signal.aborted) return new KubeError("Aborted", `${what}: ${abortReason(signal).message}`, { cause: error });
    if (error instanceof DeadlineError) return new KubeError("Timeout", error.message, { cause: error });
    return new KubeError("Network", `${what}: ${causeText(error)}`, { cause: error });
  }

  #describe(request: TransportRequest): string {
    return `${request.method} ${this.#origin}${this.#pathPrefix}${request.path.split("?", 1)[0]}`;
  }
}

/**
 * Reads into one buffer that grows by doubling, and decodes once, so that the memory does not depend on the number of
 * pieces. The buffer is given back at once: an agent at rest collects no garbage for minutes.
 */
async function readBody(what: string, body: Dispatcher.ResponseData["body"], bytesMax: number): Promise<string> {
  let read = new ArrayBuffer(BODY_BYTES_FIRST);
  try {
    let size = 0;
    for await (const chunk of body) {
      const begin = size;
      size += chunk.length;
      if (size > bytesMax) {
        // Leaving the loop destroys the body, and its connection with it.
        throw new KubeError("BadResponse", `${what}: the answer is larger than ${bytesMax} bytes`);
      }
      if (size > read.byteLength) read = read.transfer(Math.max(size, 2 * read.byteLength));
      new Uint8Array(read).set(chunk, begin);
    }
    return new TextDecoder().decode(new Uint8Array(read, 0, size));
  } finally {
    read.transfer(0);
  }
}

function lowerCase(headers: Dispatcher.ResponseData["headers"]): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : value;
  }
  return result;
}

/** Node wraps what went wrong with a connection: an AggregateError of all addresses tried has an empty message. */
function causeText(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(causeText).join("; ");
  // The message of Node lists the names in the certificate. What helps the user is the name that was asked for.
  if (isCoded(error, "ERR_TLS_CERT_ALTNAME_INVALID")) {
    const wanted = "host" in error && typeof error.host === "string" ? error.host.replace(/\.$/u, "") : "its address";
    return `the server's certificate is not for ${wanted}`;
  }
  return error instanceof Error ? error.message : String(error);
}

function isCoded(error: unknown, code: string): error is Error & { code: string } {
  return error instanceof Error && "code" in error && error.code === code;
}
