import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import type { KeyObject } from "node:crypto";
import type { CipherSuite } from "../../src/bmc/ipmi/packets/cipher-suite.ts";
import { deriveKeys } from "../../src/bmc/ipmi/packets/sealed.ts";
import type { SessionKeys } from "../../src/bmc/ipmi/packets/sealed.ts";
import { SequenceWindow } from "../../src/bmc/ipmi/session/sequence-window.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Secret } from "../../src/runtime/secret.ts";

/** A session without traffic ends after this time (IPMI 2.0, 6.12.15). */
const IDLE_MS_MAX = 60_000;

/** One entry of the session table, from the Open Session request on. */
export interface MockSession {
  readonly bmcId: number;
  readonly consoleId: number;
  readonly suite: CipherSuite;
  /** Privilege level that the client requested. */
  readonly privilegeMax: number;
  privilege: number;
  usedAtMs: number;
  handshake: Handshake | undefined;
  /** Set when the session is active. */
  keys: SessionKeys | undefined;
  sent: number;
  readonly received: SequenceWindow;
}

/** Values that RAKP messages 1 and 2 have exchanged. */
export interface Handshake {
  consoleRandom: Buffer;
  bmcRandom: Buffer;
  guid: Buffer;
  role: number;
  username: Buffer;
}

/** The session table of one BMC. */
export class SessionTable {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #sessionsMax: number;
  readonly #sessions = new Map<number, MockSession>();

  constructor(deps: { clock: Clock; random: Random }, sessionsMax: number) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#sessionsMax = sessionsMax;
  }

  /** Sessions that are open or being opened. */
  get size(): number {
    this.#expire();
    return this.#sessions.size;
  }

  /** @returns undefined if the table is full. */
  open(options: { consoleId: number; suite: CipherSuite; privilegeMax: number }): MockSession | undefined {
    if (this.size >= this.#sessionsMax) return undefined;
    const session: MockSession = {
      ...options,
      bmcId: Buffer.from(this.#random.bytes(4)).readUInt32LE() || 1,
      privilege: 2,
      usedAtMs: this.#clock.monotonicMs(),
      handshake: undefined,
      keys: undefined,
      sent: 0,
      received: new SequenceWindow(),
    };
    this.#sessions.set(session.bmcId, session);
    return session;
  }

  /** The session with this id. Restarts its idle time. */
  use(bmcId: number): MockSession | undefined {
    this.#expire();
    const session = this.#sessions.get(bmcId);
    if (session !== undefined) session.usedAtMs = this.#clock.monotonicMs();
    return session;
  }

  close(session: MockSession): void {
    this.#sessions.delete(session.bmcId);
  }

  clear(): void {
    this.#sessions.clear();
  }

  #expire(): void {
    const oldestMs = this.#clock.monotonicMs() - IDLE_MS_MAX;
    for (const session of this.#sessions.values()) if (session.usedAtMs <= oldestMs) this.close(session);
  }
}

// The BMC's half of the key exchange. It shares no code with the client, so that each checks the other (IPMI 2.0,
// 13.28, 13.31).

/** The code of RAKP message 2. */
export function rakp2Code(session: MockSession, shake: Handshake, userKey: KeyObject): Buffer {
  return createHmac(session.suite.hash, userKey)
    .update(id(session.consoleId))
    .update(id(session.bmcId))
    .update(shake.consoleRandom)
    .update(shake.bmcRandom)
    .update(shake.guid)
    .update(roleAndName(shake))
    .digest();
}

/** Whether the code of RAKP message 3 shows that the other side knows the password. */
export function isRakp3Code(code: Buffer, session: MockSession, shake: Handshake, userKey: KeyObject): boolean {
  const expected = createHmac(session.suite.hash, userKey)
    .update(shake.bmcRandom)
    .update(id(session.consoleId))
    .update(roleAndName(shake))
    .digest();
  return code.length === expected.length && timingSafeEqual(code, expected);
}

/**
 * The keys of the session, and the code of RAKP message 4. @param key K_G, or the key of the user if there is no K_G.
 */
export function activate(session: MockSession, shake: Handshake, key: KeyObject): { keys: SessionKeys; code: Buffer } {
  const sik = createHmac(session.suite.hash, key)
    .update(shake.consoleRandom)
    .update(shake.bmcRandom)
    .update(roleAndName(shake))
    .digest();
  const integrityKey = createSecretKey(sik);
  const code = createHmac(session.suite.hash, integrityKey)
    .update(shake.consoleRandom)
    .update(id(session.bmcId))
    .update(shake.guid)
    .digest()
    .subarray(0, session.suite.integrityCodeBytes);
  return { keys: deriveKeys(session.suite, integrityKey), code };
}

/** The password as a key. */
export function padded(password: Secret): KeyObject {
  return createSecretKey(Buffer.concat([Buffer.from(password.reveal()), Buffer.alloc(20)]).subarray(0, 20));
}

function roleAndName({ role, username }: Handshake): Buffer {
  return Buffer.from([role, username.length, ...username]);
}

function id(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
