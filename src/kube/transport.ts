/**
 * The wire to one API server. The agent's is made of undici pools (`http-transport.ts`); the simulation hands requests
 * to an in-memory API server in the same process. Everything above this interface is the same in both.
 */
export interface KubeTransport {
  /**
   * Sends one request and reads the whole answer, whatever its status.
   *
   * @throws KubeError with code Network, Timeout or Aborted; an HTTP error status does not throw.
   */
  send(request: TransportRequest, signal: AbortSignal): Promise<TransportResponse>;
  /**
   * Opens a watch. Resolves once the status line is there; the body then yields chunks as they come and ends, or throws
   * a KubeError, when the connection does.
   */
  stream(request: TransportRequest, signal: AbortSignal): Promise<TransportStream>;
  /** Closes every connection; calls under way fail with Aborted. */
  close(): Promise<void>;
}

/**
 * Connections are kept apart by lane, so that a burst of writes never delays the lease, nor a watch a write, nor a
 * review or a page either.
 */
export type Lane = "api" | "watch" | "lease" | "review" | "page";

export interface TransportRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, already encoded, for example `/api/v1/nodes?limit=100`. */
  path: string;
  /** JSON text. */
  body?: string;
  /** `application/json` by default. */
  contentType?: string;
  lane: Lane;
  /** Deadline of the whole call; for a watch, of its headers. */
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
