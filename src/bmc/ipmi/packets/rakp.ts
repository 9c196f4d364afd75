import { createSecretKey, timingSafeEqual } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { keyedHash } from "./cipher-suite.ts";
import type { CipherSuite } from "./cipher-suite.ts";
import type { Privilege } from "./open-session.ts";
import type { Secret } from "../../../runtime/secret.ts";

// The RAKP exchange (IPMI 2.0, 13.19 to 13.24 and 13.28): both sides prove that they know the password, and agree on a
// key.

export const USERNAME_BYTES_MAX = 16;
export const PASSWORD_BYTES_MAX = 20;
export const BMC_KEY_BYTES_MAX = 20;
const RANDOM_BYTES = 16;
const GUID_BYTES = 16;
/** The BMC finds the user by name only, not by name and privilege. */
const NAME_ONLY_LOOKUP = 0x10;

/** What the agent contributes to the exchange. */
export interface Console {
  suite: CipherSuite;
  /**
   * The same value as in the Open Session request, because some BMCs hash that one (Supermicro X8, Sun, Dell C5220).
   */
  privilege: Privilege;
  username: Buffer;
  /** The key from the password: see `userKeyOf`. */
  userKey: KeyObject;
  /** K_G, if the BMC has one. The keys of the session are then derived from it instead of the user's key. */
  bmcKey?: KeyObject;
  consoleSessionId: number;
  bmcSessionId: number;
  /** 16 random bytes, new for each exchange. */
  random: Buffer;
}

/** What the BMC contributes, from RAKP message 2. */
export interface Bmc {
  random: Buffer;
  guid: Buffer;
}

/** The contents of a RAKP message 2 or 4, before its code is compared. */
export type RakpAnswer<T> = { kind: "Refused"; status: number } | ({ kind: "Answered"; code: Buffer } & T);

/** The password as a key, padded with zeros. */
export function userKeyOf(password: Secret): KeyObject {
  const key = Buffer.alloc(PASSWORD_BYTES_MAX);
  key.write(password.reveal(), "utf8");
  return createSecretKey(key);
}

/** K_G as a key, from its text or from hex after 0x. Undefined if its length is not valid in IPMI. */
export function bmcKeyOf(secret: Secret): KeyObject | undefined {
  const text = secret.reveal();
  const bytes = /^0x(?:[0-9a-f]{2})+$/i.test(text) ? Buffer.from(text.slice(2), "hex") : Buffer.from(text, "utf8");
  return bytes.length === 0 || bytes.length > BMC_KEY_BYTES_MAX ? undefined : createSecretKey(bytes);
}

export function encodeRakp1(tag: number, console: Console): Buffer {
  const message = Buffer.alloc(28 + console.username.length);
  message[0] = tag;
  message.writeUInt32LE(console.bmcSessionId, 4);
  console.random.copy(message, 8);
  message[24] = role(console);
  message[27] = console.username.length;
  console.username.copy(message, 28);
  return message;
}

/** Parses RAKP message 2; undefined if it belongs to another exchange or has a wrong length. */
export function parseRakp2(payload: Buffer, tag: number, console: Console): RakpAnswer<Bmc> | undefined {
  const head = parseHead(payload, tag, console.consoleSessionId);
  if (head === undefined || head.status !== 0) return head && { kind: "Refused", status: head.status };
  const codeOffset = 8 + RANDOM_BYTES + GUID_BYTES;
  if (payload.length !== codeOffset + console.suite.keyExchangeCodeBytes) return undefined;
  return {
    kind: "Answered",
    random: payload.subarray(8, 8 + RANDOM_BYTES),
    guid: payload.subarray(8 + RANDOM_BYTES, codeOffset),
    code: payload.subarray(codeOffset),
  };
}

/** Whether the code in RAKP message 2 proves that the BMC knows the password. */
export function provesPassword(console: Console, bmc: Bmc, code: Buffer): boolean {
  const expected = keyedHash(
    console.suite,
    console.userKey,
    uint32(console.consoleSessionId),
    uint32(console.bmcSessionId),
    console.random,
    bmc.random,
    bmc.guid,
    roleAndName(console),
  );
  return timingSafeEqual(code, expected);
}

export function encodeRakp3(tag: number, console: Console, bmc: Bmc): Buffer {
  const code = keyedHash(
    console.suite,
    console.userKey,
    bmc.random,
    uint32(console.consoleSessionId),
    roleAndName(console),
  );
  return Buffer.concat([rakp3Head(tag, 0, console.bmcSessionId), code]);
}

/** A RAKP message 3 that ends the exchange: the BMC frees the reserved session. */
export function encodeRakp3Refusal(tag: number, status: number, bmcSessionId: number): Buffer {
  return rakp3Head(tag, status, bmcSessionId);
}

/** Parses RAKP message 4; undefined if it belongs to another exchange or has a wrong length. */
export function parseRakp4(payload: Buffer, tag: number, console: Console): RakpAnswer<object> | undefined {
  const head = parseHead(payload, tag, console.consoleSessionId);
  if (head === undefined || head.status !== 0) return head && { kind: "Refused", status: head.status };
  if (payload.length !== 8 + console.suite.integrityCodeBytes) return undefined;
  return { kind: "Answered", code: payload.subarray(8) };
}

/** The session integrity key (13.31), which only the two sides can compute. */
export function sessionIntegrityKey(console: Console, bmc: Bmc): KeyObject {
  const key = console.bmcKey ?? console.userKey;
  return createSecretKey(keyedHash(console.suite, key, console.random, bmc.random, roleAndName(console)));
}

/** Whether the code in RAKP message 4 proves that the BMC has the same session integrity key. */
export function provesSessionKey(console: Console, bmc: Bmc, integrityKey: KeyObject, code: Buffer): boolean {
  const expected = keyedHash(console.suite, integrityKey, console.random, uint32(console.bmcSessionId), bmc.guid);
  return timingSafeEqual(code, expected.subarray(0, console.suite.integrityCodeBytes));
}

/**
 * Parses the beginning of a RAKP message 2 or 4: tag, status and console session id. A refusal may end after its
 * status.
 */
function parseHead(payload: Buffer, tag: number, consoleSessionId: number): { status: number } | undefined {
  const status = payload[1];
  if (status === undefined || payload[0] !== tag) return undefined;
  if (payload.length < 8) return status === 0 ? undefined : { status };
  // Some refusals have 0 as the id.
  const id = payload.readUInt32LE(4);
  return id === consoleSessionId || (status !== 0 && id === 0) ? { status } : undefined;
}

function rakp3Head(tag: number, status: number, bmcSessionId: number): Buffer {
  return Buffer.concat([Buffer.from([tag, status, 0, 0]), uint32(bmcSessionId)]);
}

function role(console: Console): number {
  return console.privilege | NAME_ONLY_LOOKUP;
}

function roleAndName(console: Console): Buffer {
  return Buffer.concat([Buffer.from([role(console), console.username.length]), console.username]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
