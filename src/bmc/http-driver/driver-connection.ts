import type { Client } from "undici";
import type { SecureContexts } from "../gate/secure-contexts.ts";
import type { ClientCertificate } from "../interface/credentials.ts";
import type { DeviceTls } from "../interface/device-config.ts";
import { BmcError } from "../interface/errors.ts";
import { abortReason } from "../../runtime/clock.ts";
import { createHttpClient } from "../redfish/http/client.ts";
import { brokeOff, toBmcError } from "../redfish/http/connection.ts";

/** The largest answer that is read. */
const BODY_BYTES_MAX = 65_536;

/** One request as it goes out. */
export interface RawRequest {
  method: "GET" | "POST";
  path: string;
  headers: Readonly<Record<string, string>>;
  /** Empty if the request has no body. */
  body: string;
}

/** One answer as it came in. */
export interface RawAnswer {
  status: number;
  /** The value of a header; undefined if it is missing or repeated. */
  header(name: string): string | undefined;
  body: Uint8Array;
}

export interface DriverConnectionOptions {
  origin: string;
  tls: DeviceTls;
  certificate: ClientCertificate | undefined;
  connectTimeoutMs: number;
  secureContexts: SecureContexts;
}

/** Sends requests to one origin, each once, within bounds and without following redirects. */
export class DriverConnection {
  readonly origin: string;
  /** The end of validity of the last certificate that the server sent. */
  certificateUntilMs: number | undefined;
  readonly #client: Client;
  readonly #hasCertificate: boolean;

  /** @throws BmcError TlsUntrusted for TLS settings that cannot be used. */
  constructor(options: DriverConnectionOptions) {
    this.origin = options.origin;
    this.#hasCertificate = options.certificate !== undefined;
    this.#client = createHttpClient({
      ...options,
      bodyBytesMax: BODY_BYTES_MAX,
      onCertificate: (untilMs) => (this.certificateUntilMs = untilMs),
    });
  }

  /** @throws BmcError unless a complete answer arrives in time and within bounds. */
  async send({ method, path, headers, body }: RawRequest, signal: AbortSignal): Promise<RawAnswer> {
    const what = `${method} ${this.origin}${path}`;
    if (signal.aborted) throw toBmcError(abortReason(signal), what, signal);
    try {
      const response = await this.#client.request({
        method,
        path,
        headers: {
          accept: "application/json",
          "cache-control": "no-store",
          "user-agent": "ironfence",
          ...(body !== "" && { "content-type": "application/json" }),
          ...headers,
        },
        body: body === "" ? null : body,
        signal,
      });
      const bytes = new Uint8Array(await response.body.arrayBuffer());
      if ((response.headers["content-encoding"] ?? "identity") !== "identity") {
        throw new BmcError("BadResponse", "the answer has a content encoding that was not requested");
      }
      return {
        status: response.statusCode,
        header: (name) => {
          const value = response.headers[name];
          return typeof value === "string" ? value : undefined;
        },
        body: bytes,
      };
    } catch (error) {
      const failure = toBmcError(error, what, signal);
      throw this.#hasCertificate ? blameCertificate(failure) : failure;
    }
  }

  /** Closes the connection; requests in flight fail. */
  async destroy(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Names the client certificate as the cause, if the server may have refused it. */
function blameCertificate(failure: BmcError): BmcError {
  const { cause } = failure;
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "";
  // The alerts of TLS about the certificate of the peer (RFC 8446 section 6.2).
  if (/^ERR_SSL_.*ALERT_(?:.*CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/.test(code)) {
    return new BmcError("AuthFailed", `${failure.message}: the server refuses the client certificate`, { cause });
  }
  if (!brokeOff(failure)) return failure;
  const message = `${failure.message}; some servers close the connection if they refuse the client certificate`;
  return new BmcError(failure.code, message, { cause });
}
