import { createPrivateKey, X509Certificate } from "node:crypto";
import { KEY_LENGTH_MIN } from "./signature.ts";
import type { ClientCertificate } from "../interface/credentials.ts";
import type { DeviceConfig } from "../interface/device-config.ts";
import { BmcError } from "../interface/errors.ts";
import type { Secret } from "../../runtime/secret.ts";
import { parseTimeMs } from "../../runtime/time.ts";

/**
 * How the agent and a driver server authenticate each other: by a key that signs requests and answers, by a client
 * certificate and the certificate of the server, or by both.
 */
export interface DriverLogin {
  keyId: string;
  /** Undefined: nothing is signed, and TLS authenticates both sides. */
  key: Secret | undefined;
  certificate: ClientCertificate | undefined;
  /** The end of validity of `certificate`. */
  certificateUntilMs: number | undefined;
}

/**
 * @throws BmcError AuthFailed for a key or a certificate that cannot be used, Unsupported for a client certificate over
 * a connection that does not authenticate the server.
 */
export function readLogin(
  origin: string,
  { username, password, certificate, tls }: Pick<DeviceConfig, "username" | "password" | "certificate" | "tls">,
): DriverLogin {
  const certificateUntilMs = certificate === undefined ? undefined : requireCertificate(origin, certificate);
  if (certificate !== undefined && password.reveal() === "") {
    if (tls.insecureSkipVerify && tls.sha256Fingerprint === undefined) {
      const message = `${origin}: answers are not signed without a key, so the certificate of the server must be verified: set tls.caSecretRef or tls.sha256Fingerprint instead of tls.insecureSkipVerify`;
      throw new BmcError("Unsupported", message);
    }
    return { keyId: "", key: undefined, certificate, certificateUntilMs };
  }
  requireKey(username, password);
  return { keyId: username, key: password, certificate, certificateUntilMs };
}

function requireKey(keyId: string, key: Secret): void {
  if (key.reveal().length < KEY_LENGTH_MIN) {
    const make = "make one with: openssl rand -hex 32";
    throw new BmcError(
      "AuthFailed",
      `the key (password) of a driver server must have at least ${KEY_LENGTH_MIN} characters: ${make}`,
    );
  }
  if (!/^[\x21-\x7e]{1,256}$/.test(keyId)) {
    throw new BmcError(
      "AuthFailed",
      "the key id (username) of a driver server must have 1 to 256 ASCII characters and no blanks",
    );
  }
}

/**
 * The messages of the parsers are not repeated, because they may quote the key.
 *
 * @returns until when the certificate is valid.
 */
function requireCertificate(origin: string, { cert, key }: ClientCertificate): number | undefined {
  if (!origin.startsWith("https:")) {
    throw new BmcError("Unsupported", `${origin}: a client certificate needs HTTPS: use driver:// in the address`);
  }
  const parsed = attempt(() => new X509Certificate(cert));
  if (parsed === undefined) {
    throw new BmcError("AuthFailed", "the client certificate (tls.crt) contains no PEM certificate");
  }
  const privateKey = attempt(() => createPrivateKey(key.reveal()));
  if (privateKey === undefined) {
    throw new BmcError(
      "AuthFailed",
      "the key of the client certificate (tls.key) contains no PEM key without a passphrase",
    );
  }
  if (!parsed.checkPrivateKey(privateKey)) {
    throw new BmcError("AuthFailed", "the key (tls.key) does not belong to the client certificate (tls.crt)");
  }
  return parseTimeMs(parsed.validTo);
}

function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
