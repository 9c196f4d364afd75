import { createHash, X509Certificate } from "node:crypto";
import { TLSSocket } from "node:tls";
import { buildConnector } from "undici";
import { BmcError } from "../errors.ts";

/** How to trust a device's certificate. Without any of these the machine's own roots decide. */
export interface DeviceTls {
  /** PEM bundle of the authorities that may have signed it, in place of the machine's own roots. */
  ca?: string;
  /** SHA-256 of the certificate in hex, with or without colons: this very certificate is trusted and no other. */
  sha256Fingerprint?: string;
  /** Trust any certificate. A pin is honoured all the same. */
  insecureSkipVerify: boolean;
}

/**
 * Makes the function that opens connections: TCP, and TLS trusted as `tls` says.
 *
 * A pinned certificate is trusted whoever signed it and whatever names it holds. The pin is compared after the handshake, in
 * which the device has proven that it has the key, and before the first byte of a request.
 *
 * @throws BmcError TlsUntrusted where `ca` or the fingerprint cannot be read: going on would trust the wrong roots.
 */
export function createConnector(tls: DeviceTls, connectTimeoutMs: number): buildConnector.connector {
  const pin = tls.sha256Fingerprint === undefined ? undefined : parseFingerprint(tls.sha256Fingerprint);
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // BMCs speak HTTP/1.1; some stall when HTTP/2 is offered.
    allowH2: false,
    // A resumed session would skip the certificate, and with it the pin.
    maxCachedSessions: 0,
    rejectUnauthorized: pin === undefined && !tls.insecureSkipVerify,
    ...(tls.ca === undefined ? {} : { ca: parseBundle(tls.ca) }),
  });
  if (pin === undefined) return connect;
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      const found = socket instanceof TLSSocket ? fingerprintOf(socket) : undefined;
      if (found === undefined || found === pin) return callback(null, socket);
      socket.destroy();
      return callback(new BmcError("TlsUntrusted", `the certificate's SHA-256 is ${found}, not the pinned one`), null);
    });
  };
}

function parseFingerprint(text: string): string {
  const hex = text.replaceAll(":", "").toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new BmcError("TlsUntrusted", "the pinned fingerprint is no SHA-256 in hex");
  return hex;
}

/** OpenSSL passes over what it cannot read, and would then trust nothing without saying why. */
function parseBundle(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new BmcError("TlsUntrusted", "the CA bundle holds no PEM certificate");
  try {
    return blocks.map((block) => new X509Certificate(block).toString());
  } catch (cause) {
    throw new BmcError("TlsUntrusted", "the CA bundle holds a certificate that cannot be read", { cause });
  }
}

function fingerprintOf(socket: TLSSocket): string | undefined {
  const { raw } = socket.getPeerCertificate(false);
  // Node gives an empty object where the peer sent no certificate, though the type does not say so.
  return Buffer.isBuffer(raw) ? createHash("sha256").update(raw).digest("hex") : "(none)";
}
