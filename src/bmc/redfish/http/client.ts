import { Client } from "undici";
import { createConnector } from "./tls.ts";
import type { SecureContexts } from "../../gate/secure-contexts.ts";
import type { ClientCertificate } from "../../interface/credentials.ts";
import type { DeviceTls } from "../../interface/device-config.ts";

/** All headers of one answer together. */
const HEADER_BYTES_MAX = 16_384;
/**
 * Many BMCs close idle connections after five seconds. The agent closes them earlier, so that it sends no order on a
 * closed connection.
 */
const IDLE_MS_MAX = 3_000;

export interface HttpClientOptions {
  origin: string;
  tls: DeviceTls;
  certificate?: ClientCertificate | undefined;
  connectTimeoutMs: number;
  secureContexts: SecureContexts;
  /** The largest answer that is read. */
  bodyBytesMax: number;
  /** Called after each handshake (`createConnector`). */
  onCertificate: (untilMs: number) => void;
}

/**
 * Creates a client with one connection to one device. It sends one request at a time, opens the connection on demand
 * and reuses it.
 *
 * @throws BmcError TlsUntrusted for TLS settings that cannot be used.
 */
export function createHttpClient(options: HttpClientOptions): Client {
  const { origin, tls, certificate, connectTimeoutMs, secureContexts, bodyBytesMax, onCertificate } = options;
  return new Client(origin, {
    connect: createConnector({ ...tls, certificate }, connectTimeoutMs, secureContexts, onCertificate),
    pipelining: 1,
    maxResponseSize: bodyBytesMax,
    maxHeaderSize: HEADER_BYTES_MAX,
    keepAliveTimeout: IDLE_MS_MAX,
    keepAliveMaxTimeout: IDLE_MS_MAX,
    // The deadline of the caller applies instead, on the injected clock.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
