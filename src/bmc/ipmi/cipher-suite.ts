import { createHmac } from "node:crypto";
import type { KeyObject } from "node:crypto";

/**
 * The suites that can be used, by their numbers in IPMI 2.0, table 22-20. Suite 0, which needs no password, is not supported, and
 * neither are those with MD5 or RC4.
 */
export const CIPHER_SUITE_IDS = [1, 2, 3, 15, 16, 17] as const;
export type CipherSuiteId = (typeof CIPHER_SUITE_IDS)[number];

/**
 * Tried in this order unless an option says otherwise. 2 and 16 do not encrypt. 1 and 15 do not authenticate messages after the
 * login either: an attacker who can send with the address of the BMC can then report "off".
 */
export const DEFAULT_CIPHER_SUITES: readonly CipherSuiteId[] = [17, 3];

export interface CipherSuite {
  id: CipherSuiteId;
  /** Algorithm numbers of authentication, integrity and confidentiality (tables 13-17 to 13-19). */
  algorithms: readonly [authentication: number, integrity: number, confidentiality: number];
  hash: "sha1" | "sha256";
  /** The length of the codes in RAKP messages 2 and 3. */
  keyExchangeCodeBytes: number;
  /** The length of the code in RAKP message 4 and in the trailer of each message. */
  integrityCodeBytes: number;
  /** Whether messages have a trailer that authenticates them. */
  authenticates: boolean;
  /** Whether messages are encrypted (AES-CBC-128). */
  encrypts: boolean;
}

const SHA1 = { hash: "sha1", keyExchangeCodeBytes: 20, integrityCodeBytes: 12 } as const;
const SHA256 = { hash: "sha256", keyExchangeCodeBytes: 32, integrityCodeBytes: 16 } as const;

export const CIPHER_SUITES: Readonly<Record<CipherSuiteId, CipherSuite>> = {
  1: { id: 1, algorithms: [1, 0, 0], ...SHA1, authenticates: false, encrypts: false },
  2: { id: 2, algorithms: [1, 1, 0], ...SHA1, authenticates: true, encrypts: false },
  3: { id: 3, algorithms: [1, 1, 1], ...SHA1, authenticates: true, encrypts: true },
  15: { id: 15, algorithms: [3, 0, 0], ...SHA256, authenticates: false, encrypts: false },
  16: { id: 16, algorithms: [3, 4, 0], ...SHA256, authenticates: true, encrypts: false },
  17: { id: 17, algorithms: [3, 4, 1], ...SHA256, authenticates: true, encrypts: true },
};

/** The keyed hash of the suite over the concatenated parts. The key is a KeyObject: with plain bytes it would cost more than the hash. */
export function keyedHash(suite: CipherSuite, key: KeyObject, ...parts: readonly Uint8Array[]): Buffer {
  const hmac = createHmac(suite.hash, key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}
