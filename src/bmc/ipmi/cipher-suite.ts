import { createHmac } from "node:crypto";

/**
 * The suites that can be used, by their numbers in IPMI 2.0, table 22-20. All authenticate each message: without that anybody
 * on the network could say "off". Suite 0 and its like (no authentication at all) do not exist here.
 */
export type CipherSuiteId = 2 | 3 | 16 | 17;

/** Tried in this order unless an option says otherwise. 2 and 16 do not encrypt, hence they are no default. */
export const DEFAULT_CIPHER_SUITES: readonly CipherSuiteId[] = [17, 3];

export interface CipherSuite {
  id: CipherSuiteId;
  /** Algorithm numbers of authentication, integrity and confidentiality (tables 13-17 to 13-19). */
  algorithms: readonly [authentication: number, integrity: number, confidentiality: number];
  hash: "sha1" | "sha256";
  /** Length of the codes of RAKP messages 2 and 3. */
  keyExchangeCodeBytes: number;
  /** Length of the code of RAKP message 4 and of each message's trailer. */
  integrityCodeBytes: number;
  /** Whether messages are encrypted (AES-CBC-128). */
  encrypts: boolean;
}

const SHA1 = { hash: "sha1", keyExchangeCodeBytes: 20, integrityCodeBytes: 12 } as const;
const SHA256 = { hash: "sha256", keyExchangeCodeBytes: 32, integrityCodeBytes: 16 } as const;

export const CIPHER_SUITES: Readonly<Record<CipherSuiteId, CipherSuite>> = {
  2: { id: 2, algorithms: [1, 1, 0], ...SHA1, encrypts: false },
  3: { id: 3, algorithms: [1, 1, 1], ...SHA1, encrypts: true },
  16: { id: 16, algorithms: [3, 4, 0], ...SHA256, encrypts: false },
  17: { id: 17, algorithms: [3, 4, 1], ...SHA256, encrypts: true },
};

/** The keyed hash of the suite over the parts, one after the other. */
export function keyedHash(suite: CipherSuite, key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer {
  const hmac = createHmac(suite.hash, key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}
