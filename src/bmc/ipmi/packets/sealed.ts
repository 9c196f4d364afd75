import { createCipheriv, createDecipheriv, createSecretKey, randomBytes, timingSafeEqual } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { keyedHash } from "./cipher-suite.ts";
import type { CipherSuite } from "./cipher-suite.ts";
import { encodePlus, PAYLOAD } from "./rmcp.ts";
import type { Packet } from "./rmcp.ts";

/** What protects the messages of one session, in both directions. */
export interface SessionKeys {
  suite: CipherSuite;
  /** K1, for the code at the end of each message. */
  integrity: KeyObject;
  /** The first 16 bytes of K2. */
  cipher: KeyObject;
}

const IV_BYTES = 16;
const BLOCK_BYTES = 16;
/** The authenticated part of a datagram begins after the RMCP header. */
const SESSION_HEADER_OFFSET = 4;
const NEXT_HEADER = 0x07;

/** Derives K1 and K2 from the session integrity key (13.32): its keyed hashes of twenty 01h and twenty 02h bytes. */
export function deriveKeys(suite: CipherSuite, sessionIntegrityKey: KeyObject): SessionKeys {
  const derive = (constant: number): Buffer => keyedHash(suite, sessionIntegrityKey, Buffer.alloc(20, constant));
  const cipher = derive(2).subarray(0, BLOCK_BYTES);
  return { suite, integrity: createSecretKey(derive(1)), cipher: createSecretKey(cipher) };
}

/**
 * Returns the datagram of an IPMI message within a session: encrypted (13.29), then authenticated by a trailer
 * (13.28.4), as the suite requires.
 */
export function seal(keys: SessionKeys, at: { sessionId: number; sequence: number }, message: Uint8Array): Buffer {
  const { encrypts: encrypted, authenticates: authenticated } = keys.suite;
  const payload = encrypted ? encrypt(keys.cipher, message) : message;
  const datagram = encodePlus({ payloadType: PAYLOAD.ipmi, encrypted, authenticated, ...at }, payload);
  if (!authenticated) return datagram;
  // Padded to a multiple of four bytes from the header to the next-header field, including pad length and next header.
  const padBytes = -(datagram.length - SESSION_HEADER_OFFSET + 2) & 3;
  const trailer = Buffer.from([...Array<number>(padBytes).fill(0xff), padBytes, NEXT_HEADER]);
  const covered = Buffer.concat([datagram, trailer]);
  return Buffer.concat([covered, integrityCode(keys, covered)]);
}

/**
 * Returns the IPMI message of a received datagram after its trailer has proven that the BMC sent it in this session. If
 * the suite has no trailer, nothing is proven.
 *
 * @param packet the same datagram, parsed.
 * @returns `rejected` with the reason, if it cannot be trusted or decrypted.
 */
export function unseal(
  keys: SessionKeys,
  datagram: Buffer,
  packet: Extract<Packet, { version: "2.0" }>,
): { message: Buffer } | { rejected: string } {
  if (packet.authenticated !== keys.suite.authenticates)
    return { rejected: "the message uses an unexpected authentication" };
  if (packet.encrypted !== keys.suite.encrypts) return { rejected: "the message uses an unexpected encryption" };
  if (!keys.suite.authenticates) return { message: packet.payload };
  const coveredEnd = datagram.length - keys.suite.integrityCodeBytes;
  const payloadEnd = packet.payload.byteOffset - datagram.byteOffset + packet.payload.length;
  if (coveredEnd < payloadEnd + 2) return { rejected: "a message without trailer" };
  const covered = datagram.subarray(0, coveredEnd);
  if (!timingSafeEqual(datagram.subarray(coveredEnd), integrityCode(keys, covered))) {
    return { rejected: "a message with a wrong authentication code" };
  }
  if (!keys.suite.encrypts) return { message: packet.payload };
  const message = decrypt(keys.cipher, packet.payload);
  return message === undefined ? { rejected: "a message that cannot be decrypted" } : { message };
}

function integrityCode(keys: SessionKeys, covered: Buffer): Buffer {
  const code = keyedHash(keys.suite, keys.integrity, covered.subarray(SESSION_HEADER_OFFSET));
  return code.subarray(0, keys.suite.integrityCodeBytes);
}

function encrypt(key: KeyObject, message: Uint8Array): Buffer {
  const padBytes = -(message.length + 1) & (BLOCK_BYTES - 1);
  const padding = Array.from({ length: padBytes }, (_, index) => index + 1);
  const plain = Buffer.concat([message, Buffer.from([...padding, padBytes])]);
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-128-cbc", key, iv).setAutoPadding(false);
  return Buffer.concat([iv, cipher.update(plain), cipher.final()]);
}

/** @returns undefined if length or padding are not those of an encrypted message. */
function decrypt(key: KeyObject, payload: Buffer): Buffer | undefined {
  const cipherBytes = payload.length - IV_BYTES;
  if (cipherBytes < BLOCK_BYTES || cipherBytes % BLOCK_BYTES !== 0) return undefined;
  const decipher = createDecipheriv("aes-128-cbc", key, payload.subarray(0, IV_BYTES)).setAutoPadding(false);
  const plain = Buffer.concat([decipher.update(payload.subarray(IV_BYTES)), decipher.final()]);
  const padBytes = plain.at(-1) ?? 0;
  const messageBytes = plain.length - 1 - padBytes;
  if (padBytes >= BLOCK_BYTES || messageBytes < 0) return undefined;
  const padding = plain.subarray(messageBytes, -1);
  return padding.every((byte, index) => byte === index + 1) ? plain.subarray(0, messageBytes) : undefined;
}
