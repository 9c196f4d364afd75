import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../runtime/secret.ts";

// The signatures of requests and answers (docs/reference/driver.md). Pure.

/** The version of the contract: the first line of every text that is signed. */
const CONTRACT = "ironfence-driver-1";

/** The shortest key, in characters. An attacker who reads one request on the network could try all shorter ones. */
export const KEY_LENGTH_MIN = 32;
/**
 * How far the time of a request may differ from the clock of the server. It makes a delayed order invalid before the
 * agent gives up waiting for the effect of a power-off (docs/explanation/off-proof.md).
 */
export const TIME_WINDOW_S = 60;
export const NONCE_BYTES = 16;

/** The headers of the contract, in lower case. */
export const HEADERS = {
  keyId: "ironfence-key-id",
  time: "ironfence-time",
  nonce: "ironfence-nonce",
  signature: "ironfence-signature",
} as const;

/** Everything of a request that its signature covers. */
export interface SignedRequest {
  method: "GET" | "POST";
  /** The path as it is on the request line. */
  path: string;
  /** Seconds since the epoch. */
  timeS: number;
  /** 32 hexadecimal digits in lower case, never used twice. */
  nonce: string;
  body: string;
}

/** Everything of an answer that its signature covers. The nonce is that of the request. */
export interface SignedAnswer {
  nonce: string;
  status: number;
  body: Uint8Array;
}

/** @returns HMAC-SHA256 in hexadecimal digits. */
export function signRequest(key: Secret, { method, path, timeS, nonce, body }: SignedRequest): string {
  return sign(key, ["request", method, path, String(timeS), nonce, sha256(body)]);
}

/** Whether `signature` is valid for the answer. The answer to another or an earlier request has another nonce. */
export function isSigned(key: Secret, { nonce, status, body }: SignedAnswer, signature: string | undefined): boolean {
  if (signature === undefined || !/^[0-9a-f]{64}$/.test(signature)) return false;
  const expected = sign(key, ["answer", nonce, String(status), sha256(body)]);
  return timingSafeEqual(Buffer.from(signature, "hex"), Buffer.from(expected, "hex"));
}

function sign(key: Secret, lines: readonly string[]): string {
  return createHmac("sha256", key.reveal())
    .update([CONTRACT, ...lines].join("\n"))
    .digest("hex");
}

function sha256(body: string | Uint8Array): string {
  return createHash("sha256").update(body).digest("hex");
}
