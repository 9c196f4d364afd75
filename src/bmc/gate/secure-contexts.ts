import { createHash, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { SecureContext, SecureContextOptions } from "node:tls";
import { CLIENT_CIPHERS } from "../../runtime/ciphers.ts";
import type { ClientCertificate } from "../interface/credentials.ts";
import type { DeviceTls, TlsVersion } from "../interface/device-config.ts";
import { BmcError } from "../interface/errors.ts";
import type { Secret } from "../../runtime/secret.ts";

/** The settings of a device that decide which secure context its connections use. */
type SecureContextSettings = Pick<DeviceTls, "ca" | "minVersion"> & { certificate?: ClientCertificate | undefined };

const CONTEXTS_MAX = 64;

/**
 * Shares secure contexts between devices: most devices of a rack have the same settings, and a context takes 20 KiB.
 */
export class SecureContexts {
  /** By settings, the most recently used last. */
  readonly #contexts = new Map<string, SecureContext>();

  /** @throws BmcError TlsUntrusted if `ca` cannot be read. */
  get({ ca, minVersion, certificate }: SecureContextSettings): SecureContext {
    const key = JSON.stringify([ca, minVersion, certificate && [certificate.cert, hashOf(certificate.key)]]);
    const context =
      this.#contexts.get(key) ??
      createSecureContext({
        ...versionOptions(minVersion),
        ...(ca !== undefined && { ca: parseBundle(ca) }),
        ...(certificate && { cert: certificate.cert, key: certificate.key.reveal() }),
      });
    this.#contexts.delete(key);
    this.#contexts.set(key, context);
    for (const oldest of this.#contexts.keys()) {
      if (this.#contexts.size <= CONTEXTS_MAX) break;
      this.#contexts.delete(oldest);
    }
    return context;
  }
}

function hashOf(secret: Secret): string {
  return createHash("sha256").update(secret.reveal()).digest("hex");
}

/** The options of Node for the oldest TLS version of a device. */
export function versionOptions(minVersion: TlsVersion = "1.2"): Pick<SecureContextOptions, "minVersion" | "ciphers"> {
  // OpenSSL allows versions before 1.2 only at SECLEVEL 0. Old BMCs may offer only finite-field Diffie-Hellman, which
  // `CLIENT_CIPHERS` excludes.
  const ciphers = minVersion < "1.2" ? "DEFAULT@SECLEVEL=0" : CLIENT_CIPHERS;
  return { minVersion: NODE_VERSIONS[minVersion], ciphers };
}

const NODE_VERSIONS = { "1.0": "TLSv1", "1.1": "TLSv1.1", "1.2": "TLSv1.2", "1.3": "TLSv1.3" } as const;

/** OpenSSL skips what it cannot read, and would then trust no certificate, without an error. */
function parseBundle(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new BmcError("TlsUntrusted", "the CA bundle contains no PEM certificate");
  try {
    return blocks.map((block) => new X509Certificate(block).toString());
  } catch (cause) {
    throw new BmcError("TlsUntrusted", "the CA bundle contains a certificate that cannot be parsed", { cause });
  }
}
