import { createCipheriv, createDecipheriv, createHash, createHmac } from "node:crypto";

// The agent side of the user-based security model: RFC 3414, RFC 3826 (AES-128), RFC 7860 (SHA-2). It is written from
// these documents and shares no code with the driver.

export type AuthProtocol = "SHA" | "SHA-224" | "SHA-256" | "SHA-384" | "SHA-512" | "MD5";

const HASHES: Readonly<Record<AuthProtocol, { hash: string; macBytes: number }>> = {
  MD5: { hash: "md5", macBytes: 12 },
  SHA: { hash: "sha1", macBytes: 12 },
  "SHA-224": { hash: "sha224", macBytes: 16 },
  "SHA-256": { hash: "sha256", macBytes: 24 },
  "SHA-384": { hash: "sha384", macBytes: 32 },
  "SHA-512": { hash: "sha512", macBytes: 48 },
};

const EXPANDED_BYTES = 1_048_576;

/** Derives the localized key from a password (RFC 3414 A.2). */
export function localizedKey(protocol: AuthProtocol, password: string, engineId: Buffer): Buffer {
  const { hash } = HASHES[protocol];
  const digest = createHash(hash).update(Buffer.alloc(EXPANDED_BYTES, password)).digest();
  return createHash(hash).update(digest).update(engineId).update(digest).digest();
}

export function macBytes(protocol: AuthProtocol): number {
  return HASHES[protocol].macBytes;
}

export function macOf(protocol: AuthProtocol, key: Buffer, message: Buffer): Buffer {
  return createHmac(HASHES[protocol].hash, key).update(message).digest().subarray(0, macBytes(protocol));
}

export interface EngineTime {
  boots: number;
  time: number;
}

export function encrypt(key: Buffer, { boots, time }: EngineTime, salt: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv("aes-128-cfb", key.subarray(0, 16), vector({ boots, time }, salt));
  return Buffer.concat([cipher.update(plain), cipher.final()]);
}

export function decrypt(key: Buffer, time: EngineTime, salt: Buffer, encrypted: Buffer): Buffer {
  const decipher = createDecipheriv("aes-128-cfb", key.subarray(0, 16), vector(time, salt));
  return Buffer.concat([decipher.update(encrypted), decipher.final()]);
}

function vector({ boots, time }: EngineTime, salt: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(boots, 0);
  head.writeUInt32BE(time, 4);
  return Buffer.concat([head, salt]);
}
