import { createHash, X509Certificate } from "node:crypto";
import { createSecureContext, TLSSocket } from "node:tls";
import type { SecureContext, SecureContextOptions } from "node:tls";
import { buildConnector } from "undici";
import { CLIENT_CIPHERS } from "../../runtime/ciphers.ts";
import { BmcError } from "../errors.ts";

/** How to trust a device's certificate. Without any of these the machine's own roots decide. */
export interface DeviceTls {
  /** PEM bundle of the authorities that may have signed it, in place of the machine's own roots. */
  ca?: string;
  /** SHA-256 of the certificate in hex, with or without colons: this very certificate is trusted and no other. */
  sha256Fingerprint?: string;
  /** Trust any certificate. A pin is still checked. */
  insecureSkipVerify: boolean;
  /**
   * Oldest version that is spoken: 1.2 by default. Below that, weak ciphers, short keys and finite-field Diffie-Hellman are let
   * through as well.
   */
  minVersion?: TlsVersion;
}

export type TlsVersion = "1.0" | "1.1" | "1.2" | "1.3";

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
    // `distrust` decides, so that its error can name the certificate: no request is written before it has.
    rejectUnauthorized: false,
    secureContext: secureContextOf(tls),
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(tooOld(error) ?? error, null);
      const problem = socket instanceof TLSSocket ? distrust(socket, pin, tls.insecureSkipVerify) : undefined;
      if (problem === undefined) return callback(null, socket);
      socket.destroy();
      return callback(new BmcError("TlsUntrusted", problem), null);
    });
  };
}

/** Most devices of a rack have the same settings; each context of its own would take 20 KiB. The latest used are at the end. */
const contexts = new Map<string, SecureContext>();
const CONTEXTS_MAX = 64;

function secureContextOf({ ca, minVersion }: DeviceTls): SecureContext {
  const key = JSON.stringify([ca, minVersion]);
  const known = contexts.get(key);
  const context =
    known ?? createSecureContext({ ...versionOptions(minVersion), ...(ca !== undefined && { ca: parseBundle(ca) }) });
  contexts.delete(key);
  contexts.set(key, context);
  for (const oldest of contexts.keys()) {
    if (contexts.size <= CONTEXTS_MAX) break;
    contexts.delete(oldest);
  }
  return context;
}

/** The options of Node for a device's oldest TLS version. */
export function versionOptions(minVersion: TlsVersion = "1.2"): Pick<SecureContextOptions, "minVersion" | "ciphers"> {
  // OpenSSL lets versions before 1.2 through at this level only. Old BMCs may know no other key exchange than one of large groups.
  const ciphers = minVersion < "1.2" ? "DEFAULT@SECLEVEL=0" : CLIENT_CIPHERS;
  return { minVersion: NODE_VERSIONS[minVersion], ciphers };
}

const NODE_VERSIONS = { "1.0": "TLSv1", "1.1": "TLSv1.1", "1.2": "TLSv1.2", "1.3": "TLSv1.3" } as const;

/** Why the peer of a finished handshake is not trusted; undefined where it is. */
function distrust(socket: TLSSocket, pin: string | undefined, insecureSkipVerify: boolean): string | undefined {
  const found = fingerprintOf(socket);
  if (pin !== undefined) {
    return found === pin ? undefined : `the certificate's SHA-256 is ${found}, not the pinned one`;
  }
  if (insecureSkipVerify || socket.authorized) return undefined;
  // Node gives the code or the error, whatever its type says.
  const why: unknown = socket.authorizationError;
  const code = why instanceof Error && "code" in why ? why.code : why;
  return `certificate not trusted (${String(code)}); set tls.caSecretRef (--ca-file), or, if its SHA-256 ${found} is the BMC's own, pin it in tls.sha256Fingerprint (--sha256-fingerprint)`;
}

/** The error of a handshake with a BMC that speaks old TLS alone, or has too short a key; undefined for any other. */
export function tooOld(error: Error): BmcError | undefined {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (
    !/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|KEY_TOO_SMALL|WRONG_SIGNATURE_TYPE|HANDSHAKE_FAILURE|CA_MD_TOO_WEAK/.test(
      code,
    )
  ) {
    return undefined;
  }
  const message = `no TLS in common (${code}); where the BMC knows old TLS alone, tls.minVersion (--tls-min-version) admits it`;
  return new BmcError("TlsUntrusted", message, { cause: error });
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
