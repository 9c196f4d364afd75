// oxlint-disable-next-line import/no-unassigned-import -- it must have run before @peculiar/x509 loads
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import type { Clock } from "../../src/runtime/clock.ts";

// Creates throw-away certificates for mocks, demos and tests. Do not use them in production.

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  modulusLength: 2_048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
} as const;
const DAY_MS = 86_400_000;
/** Certificates are valid since yesterday, so that clients with a wrong clock accept them. */
const BACKDATED_MS = DAY_MS;

/** A certificate and its private key, both PEM. */
export interface CertificateAndKey {
  certPem: string;
  keyPem: string;
  /** SHA-256 of the certificate, lower-case hex without colons. */
  sha256Fingerprint: string;
}

export interface CertificateRequest {
  commonName: string;
  /** Kubernetes treats the organizations of a client certificate as the groups of the user. */
  organizations?: readonly string[];
  dnsNames?: readonly string[];
  ipAddresses?: readonly string[];
  usage: "server" | "client";
  /** P-256 by default. Some cipher suites need RSA. */
  keys?: "rsa";
  /** 30 by default. A negative value makes an expired certificate. */
  validDays?: number;
}

/** A certificate authority that lives as long as the process. */
export interface CertificateAuthority {
  certPem: string;
  issue(request: CertificateRequest): Promise<CertificateAndKey>;
}

/** Creates a CA with a new key. */
export async function createCertificateAuthority(
  clock: Pick<Clock, "nowMs">,
  commonName: string,
): Promise<CertificateAuthority> {
  x509.cryptoProvider.set(webcrypto);
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: ALGORITHM,
    ...validity(clock, 30),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    certPem: certificate.toString("pem"),
    issue: (request) => issue(clock, certificate, keys.privateKey, request),
  };
}

async function issue(
  clock: Pick<Clock, "nowMs">,
  issuer: x509.X509Certificate,
  signingKey: webcrypto.CryptoKey,
  request: CertificateRequest,
): Promise<CertificateAndKey> {
  const algorithm = request.keys === "rsa" ? RSA : ALGORITHM;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const names: x509.JsonGeneralName[] = [
    ...(request.dnsNames ?? []).map((value) => ({ type: "dns" as const, value })),
    ...(request.ipAddresses ?? []).map((value) => ({ type: "ip" as const, value })),
  ];
  const organizations = request.organizations ?? [];
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [...organizations.map((name) => ({ O: [name] })), { CN: [request.commonName] }],
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    ...validity(clock, request.validDays ?? 30),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        request.usage === "server" ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    certPem: certificate.toString("pem"),
    keyPem: x509.PemConverter.encode(pkcs8, "PRIVATE KEY"),
    sha256Fingerprint: Buffer.from(await certificate.getThumbprint("SHA-256")).toString("hex"),
  };
}

function validity(clock: Pick<Clock, "nowMs">, validDays: number): { notBefore: Date; notAfter: Date } {
  const nowMs = clock.nowMs();
  const notAfterMs = nowMs + validDays * DAY_MS;
  return { notBefore: new Date(Math.min(nowMs, notAfterMs) - BACKDATED_MS), notAfter: new Date(notAfterMs) };
}
