import { createHash } from "node:crypto";
import { TLSSocket } from "node:tls";
import { buildConnector } from "undici";
import type { SecureContexts } from "../../gate/secure-contexts.ts";
import type { ClientCertificate } from "../../interface/credentials.ts";
import type { DeviceTls } from "../../interface/device-config.ts";
import { BmcError } from "../../interface/errors.ts";
import { parseTimeMs } from "../../../runtime/time.ts";

/**
 * Creates the function that opens connections: TCP, and TLS with the trust settings and the client certificate in
 * `tls`. `onCertificate` is called after each handshake with the end of validity of the device's certificate, trusted
 * or not.
 *
 * A pinned certificate is trusted, whatever its issuer and its names are. The pin is compared after the handshake, in
 * which the device has proven that it has the key, and before the first byte of a request.
 *
 * @throws BmcError TlsUntrusted if `ca` or the fingerprint cannot be parsed: the wrong certificate authorities would be
 * trusted otherwise.
 */
export function createConnector(
  tls: DeviceTls & { certificate?: ClientCertificate | undefined },
  connectTimeoutMs: number,
  contexts: SecureContexts,
  onCertificate: (untilMs: number) => void,
): buildConnector.connector {
  const pin = tls.sha256Fingerprint === undefined ? undefined : parseFingerprint(tls.sha256Fingerprint);
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // BMCs speak HTTP/1.1. Some hang if HTTP/2 is offered.
    allowH2: false,
    // A resumed session has no certificate to compare with the pin.
    maxCachedSessions: 0,
    // `distrust` decides instead, so that the error can name the certificate. No request is sent before that.
    rejectUnauthorized: false,
    secureContext: contexts.get(tls),
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(tooOld(error) ?? error, null);
      if (socket instanceof TLSSocket) {
        const untilMs = parseTimeMs(socket.getPeerCertificate(false).valid_to);
        if (untilMs !== undefined) onCertificate(untilMs);
      }
      const problem = socket instanceof TLSSocket ? distrust(socket, pin, tls.insecureSkipVerify) : undefined;
      if (problem === undefined) return callback(null, socket);
      socket.destroy();
      return callback(new BmcError("TlsUntrusted", problem), null);
    });
  };
}

/** Why the peer of a finished handshake is not trusted; undefined if it is. */
function distrust(socket: TLSSocket, pin: string | undefined, insecureSkipVerify: boolean): string | undefined {
  const found = fingerprintOf(socket);
  if (pin !== undefined) {
    return found === pin ? undefined : `the SHA-256 of the certificate is ${found}, not the pinned one`;
  }
  if (insecureSkipVerify || socket.authorized) return undefined;
  // Node returns either a code or an error, whatever the type says.
  const why: unknown = socket.authorizationError;
  const code = why instanceof Error && "code" in why ? why.code : why;
  return `certificate not trusted (${String(code)}); set tls.caSecretRef (--ca-file), or, if its SHA-256 ${found} is that of the BMC, pin it in tls.sha256Fingerprint (--sha256-fingerprint)`;
}

/**
 * The error for a failed handshake with a BMC that supports only old TLS, or has a key that is too short. Undefined for
 * any other failure.
 */
export function tooOld(error: Error): BmcError | undefined {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (
    !/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|KEY_TOO_SMALL|WRONG_SIGNATURE_TYPE|HANDSHAKE_FAILURE|CA_MD_TOO_WEAK/.test(
      code,
    )
  ) {
    return undefined;
  }
  const message = `no common TLS version (${code}); if the BMC supports only old TLS, tls.minVersion (--tls-min-version) allows it`;
  return new BmcError("TlsUntrusted", message, { cause: error });
}

function parseFingerprint(text: string): string {
  const hex = text.replaceAll(":", "").toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new BmcError("TlsUntrusted", "the pinned fingerprint is not a SHA-256 in hex");
  return hex;
}

function fingerprintOf(socket: TLSSocket): string | undefined {
  const { raw } = socket.getPeerCertificate(false);
  // Node returns an empty object if the peer sent no certificate, whatever the type says.
  return Buffer.isBuffer(raw) ? createHash("sha256").update(raw).digest("hex") : "(none)";
}
