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
 * The largest answer that is read, apart from watches. A page of 100 nodes, each with 50 images and every condition, is
 * 3 MiB, and etcd stores no object above 1.5 MiB.
 */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** The same for a workload cluster. Its API server is not trusted, and there may be a hundred of them. */
export const WORKLOAD_BODY_BYTES_MAX = 4 * 1024 * 1024;

/** The first size of the buffer for an answer. Most answers are smaller. */
const BODY_BYTES_FIRST = 16 * 1024;

const USER_AGENT = "ironfence";

export interface HttpTransportOptions extends LanePoolsOptions {
  /** Larger answers are cut off. */
  bodyBytesMax: number;
}

/**
 * A transport over HTTP to `cluster` that keeps its credentials up to date. It opens no connection before the first
 * call.
 *
 * @param options by default, answers of up to 64 MiB, and servers at any address.
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
  /** The path in the server's URL, for example `/k8s/clusters/c-1`; usually empty. */
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
    // The deadline is for the response headers alone, so the exchange has its own signal, which the deadline does not
    // abort.
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

  /** Sends `request`. If the server refuses the credentials (401, so it did nothing), sends it again with new ones. */
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

  /** New certificates need new connections. Connections in use are closed when their calls have ended. */
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
 * Reads into one buffer that doubles as needed, and decodes once, so that the memory does not depend on the number of
 * chunks. The buffer is freed at once, because an idle agent may not collect garbage for minutes.
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

/**
 * The cause of a failed connection. If Node tried several addresses, it throws an AggregateError with an empty message.
 */
function causeText(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(causeText).join("; ");
  // Node's message lists the names in the certificate, but the user needs the name that the certificate does not have.
  if (isCoded(error, "ERR_TLS_CERT_ALTNAME_INVALID")) {
    const wanted = "host" in error && typeof error.host === "string" ? error.host.replace(/\.$/u, "") : "its address";
    return `the server's certificate is not for ${wanted}`;
  }
  return error instanceof Error ? error.message : String(error);
}

function isCoded(error: unknown, code: string): error is Error & { code: string } {
  return error instanceof Error && "code" in error && error.code === code;
}
