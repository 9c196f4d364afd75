/**
 * Sends requests to one API server. The agent uses undici pools (`http-transport.ts`); the simulation passes requests
 * to an in-memory API server in the same process. All code above this interface is the same in both.
 */
export interface KubeTransport {
  /**
   * Sends one request and reads the whole answer, whatever its status.
   *
   * @throws KubeError with code Network, Timeout or Aborted; an HTTP error status does not throw.
   */
  send(request: TransportRequest, signal: AbortSignal): Promise<TransportResponse>;
  /**
   * Opens a watch. Resolves when the response headers have arrived. The body then yields chunks as they arrive. It ends
   * when the connection ends, or throws a KubeError when the connection breaks.
   */
  stream(request: TransportRequest, signal: AbortSignal): Promise<TransportStream>;
  /** Closes every connection. Calls in progress fail with Aborted. */
  close(): Promise<void>;
}

/**
 * Each lane has its own connections, so that calls of one lane never delay those of another. For example, a burst of
 * writes does not delay the renewal of the lease. `bulk` is for calls that are sent by the hundred, for example those
 * that end pods, so that no live read before a power order waits behind them.
 */
export type Lane = "api" | "bulk" | "watch" | "lease" | "review" | "page";

export interface TransportRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, already encoded, for example `/api/v1/nodes?limit=100`. */
  path: string;
  /** JSON text. */
  body?: string;
  /** `application/json` by default. */
  contentType?: string;
  lane: Lane;
  /** Deadline of the whole call. For a watch, only of its response headers. */
  timeoutMs: number;
}

export interface TransportResponse {
  status: number;
  /** Lower-case names. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

export interface TransportStream {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: AsyncIterable<string>;
}
