import { createHmac } from "node:crypto";
import type { KeyObject } from "node:crypto";
import type { CipherSuiteId } from "../../interface/cipher-suites.ts";

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

/**
 * The keyed hash of the suite over the concatenated parts. The key is a KeyObject, because the use of plain bytes would
 * cost more time than the hash.
 */
export function keyedHash(suite: CipherSuite, key: KeyObject, ...parts: readonly Uint8Array[]): Buffer {
  const hmac = createHmac(suite.hash, key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}
