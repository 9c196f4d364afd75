import { randomBytes, randomInt } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { Channel, growingWaits } from "./channel.ts";
import type { Received } from "./channel.ts";
import { CIPHER_SUITES } from "../packets/cipher-suite.ts";
import type { CipherSuite } from "../packets/cipher-suite.ts";
import type { CipherSuiteId } from "../../interface/cipher-suites.ts";
import { completionFailure, LoginRefusal } from "../packets/codes.ts";
import { readAuthCapabilities } from "./auth-capabilities.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import { encodeOpenRequest, parseOpenResponse, PRIVILEGE } from "../packets/open-session.ts";
import type { Privilege } from "../packets/open-session.ts";
import * as rakp from "../packets/rakp.ts";
import { encodePlus, parsePacket, PAYLOAD } from "../packets/rmcp.ts";
import { deriveKeys } from "../packets/sealed.ts";
import { IpmiSession } from "./session.ts";
import type { IpmiAddress } from "../../interface/address.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Secret } from "../../../runtime/secret.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** How many times a stalled handshake is restarted. */
const STALLS_MAX = 3;
/** The part of the answer timeout for which the first handshake waits. Each further one waits twice as long. */
const FIRST_WAIT_SHARE = 1 / 8;
const UINT32_VALUES = 2 ** 32;

/**
 * Refusals of the suite, after which the next suite is tried. Some BMCs report "no session is free" or "invalid
 * parameter" if they do not support a suite.
 */
const SUITE_REFUSALS: ReadonlySet<number> = new Set([0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x10, 0x11, 0x12]);
/**
 * Refusals of the privilege, after which a lower one is tried. Cisco refuses the user name if the user may not be an
 * administrator.
 */
const PRIVILEGE_REFUSALS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0b, 0x0d]);
const WRONG_INTEGRITY_CODE = 0x0f;
/**
 * The BMC is out of step with the handshake: it no longer knows the session, or it uses another RAKP 1 than the one
 * that it answered, after a duplicated datagram. This cannot mean a wrong password, because RAKP 2 has shown that it is
 * correct.
 */
const OUT_OF_STEP: ReadonlySet<number> = new Set([0x02, 0x08, WRONG_INTEGRITY_CODE]);

export interface LoginOptions {
  address: IpmiAddress;
  login: BmcCredentials;
  /** The key (K_G) of the BMC, if it has one. */
  bmcKey?: Secret | undefined;
  suites: readonly CipherSuiteId[];
  clock: Clock;
  /** The time without an answer after which the BMC counts as unreachable. */
  connectTimeoutMs: number;
  /** The deadline for an answer within the login. */
  answerTimeoutMs: number;
}

/**
 * Opens a session (IPMI 2.0, 13.14 to 13.24) with the first suite and the highest privilege that the BMC grants.
 *
 * @throws BmcError: AuthFailed if user or password are refused, Unreachable if no BMC answers; the reason of `signal`
 * on abort.
 */
export async function openIpmiSession(options: LoginOptions, signal: AbortSignal): Promise<IpmiSession> {
  const { address, login } = options;
  const username = Buffer.from(login.username, "utf8");
  if (username.length > rakp.USERNAME_BYTES_MAX) {
    throw new BmcError(
      "AuthFailed",
      `${address.text}: IPMI does not support user names above ${rakp.USERNAME_BYTES_MAX} bytes`,
    );
  }
  if (Buffer.byteLength(login.password.reveal(), "utf8") > rakp.PASSWORD_BYTES_MAX) {
    throw new BmcError(
      "AuthFailed",
      `${address.text}: IPMI does not support passwords above ${rakp.PASSWORD_BYTES_MAX} bytes`,
    );
  }
  const bmcKey = options.bmcKey === undefined ? undefined : rakp.bmcKeyOf(options.bmcKey);
  if (options.bmcKey !== undefined && bmcKey === undefined) {
    throw new BmcError(
      "Unsupported",
      `${address.text}: the key (K_G) of a BMC must have 1 to ${rakp.BMC_KEY_BYTES_MAX} bytes`,
    );
  }
  const keys = { userKey: rakp.userKeyOf(login.password), ...(bmcKey !== undefined && { bmcKey }) };
  const channel = await Channel.open(address, options.clock, signal);
  try {
    const { hasBmcKey } = await readAuthCapabilities(channel, options, signal);
    return await new Handshakes(channel, options, username, keys, hasBmcKey).run(signal);
  } catch (error) {
    channel.close();
    throw error;
  }
}

/** The handshake has stalled. It is restarted, never continued. */
class Stalled extends Error {
  override readonly cause: BmcError;
  constructor(cause: BmcError) {
    super(cause.message, { cause });
    this.cause = cause;
  }
}

/** The BMC has chosen other algorithms than the requested ones. */
class OtherAlgorithms extends BmcError {
  constructor(what: string) {
    super("BadResponse", `${what}: answered with other algorithms than the requested ones`);
  }
}

/** Tries handshakes with one BMC until one succeeds or is refused permanently. */
class Handshakes {
  readonly #channel: Channel;
  readonly #options: LoginOptions;
  readonly #username: Buffer;
  readonly #keys: Pick<rakp.Console, "userKey" | "bmcKey">;
  readonly #hasBmcKey: boolean;
  #tag = randomInt(256);
  #stalls = 0;

  constructor(
    channel: Channel,
    options: LoginOptions,
    username: Buffer,
    keys: Pick<rakp.Console, "userKey" | "bmcKey">,
    hasBmcKey: boolean,
  ) {
    this.#channel = channel;
    this.#options = options;
    this.#username = username;
    this.#keys = keys;
    this.#hasBmcKey = hasBmcKey;
  }

  async run(signal: AbortSignal): Promise<IpmiSession> {
    const suites = this.#options.suites.map((id) => CIPHER_SUITES[id]);
    const refusals: BmcError[] = [];
    const { address } = this.#options;
    let privilege: Privilege = address.privilege === "OPERATOR" ? PRIVILEGE.operator : PRIVILEGE.administrator;
    for (let index = 0; ;) {
      const suite = suites[index];
      if (suite === undefined) throw this.#suitesRefused(refusals);
      try {
        return await this.#shakeHands(suite, privilege, signal);
      } catch (error) {
        const status = error instanceof LoginRefusal ? error.status : undefined;
        if (error instanceof Stalled) {
          this.#stalls += 1;
          if (this.#stalls > STALLS_MAX) throw error.cause;
        } else if (error instanceof OtherAlgorithms || (status !== undefined && SUITE_REFUSALS.has(status))) {
          if (error instanceof BmcError) refusals.push(error);
          index += 1;
        } else if (status !== undefined && PRIVILEGE_REFUSALS.has(status) && privilege === PRIVILEGE.administrator) {
          privilege = PRIVILEGE.operator;
        } else {
          throw error;
        }
      }
    }
  }

  /**
   * "No session is free" takes precedence over an unknown suite: with a free session the login might have succeeded.
   */
  #suitesRefused(refusals: readonly BmcError[]): BmcError {
    const decisive = refusals.find(({ code }) => code === "Busy") ?? refusals.at(-1);
    return decisive ?? new BmcError("Unsupported", `${this.#options.address.text}: no cipher suite is allowed`);
  }

  async #shakeHands(suite: CipherSuite, privilege: Privilege, signal: AbortSignal): Promise<IpmiSession> {
    const { clock } = this.#options;
    const consoleSessionId = randomInt(1, UINT32_VALUES);
    const bmcSessionId = await this.#open(suite, privilege, consoleSessionId, signal);
    const console: rakp.Console = {
      suite,
      privilege,
      username: this.#username,
      ...this.#keys,
      consoleSessionId,
      bmcSessionId,
      random: randomBytes(16),
    };
    let session: IpmiSession | undefined;
    try {
      const bmc = await this.#proveIdentity(console, signal);
      const key = rakp.sessionIntegrityKey(console, bmc);
      session = new IpmiSession(this.#channel, clock, { keys: deriveKeys(suite, key), consoleSessionId, bmcSessionId });
      await this.#agreeOnKey(console, bmc, key, signal);
    } catch (error) {
      // A BMC has few sessions. From RAKP 3 on this session may be open, and before that the BMC may have reserved it.
      // A BMC with another session key understands only the refusal.
      session?.sendClose();
      this.#refuse(bmcSessionId);
      throw error;
    }
    await this.#raisePrivilege(session, privilege, signal);
    return session;
  }

  async #open(
    suite: CipherSuite,
    privilege: Privilege,
    consoleSessionId: number,
    signal: AbortSignal,
  ): Promise<number> {
    const what = this.#step(`open session with cipher suite ${suite.id}`);
    const tag = this.#nextTag();
    const request = encodeOpenRequest({ tag, privilege, consoleSessionId, suite });
    const answer = await this.#ask(what, PAYLOAD.openRequest, request, PAYLOAD.openResponse, signal, (payload) =>
      parseOpenResponse(payload, { tag, consoleSessionId, suite }),
    );
    if (answer.kind === "Refused") throw refusal(what, answer.status);
    if (answer.kind === "OtherAlgorithms") throw new OtherAlgorithms(what);
    return answer.bmcSessionId;
  }

  async #proveIdentity(console: rakp.Console, signal: AbortSignal): Promise<rakp.Bmc> {
    const what = this.#step("RAKP 1");
    const tag = this.#nextTag();
    const answer = await this.#ask(
      what,
      PAYLOAD.rakp1,
      rakp.encodeRakp1(tag, console),
      PAYLOAD.rakp2,
      signal,
      (payload) => rakp.parseRakp2(payload, tag, console),
    );
    if (answer.kind === "Refused") throw refusal(what, answer.status);
    if (!rakp.provesPassword(console, answer, answer.code)) {
      throw new BmcError("AuthFailed", `${what}: the password is not the one that the BMC has for this user`);
    }
    return answer;
  }

  async #agreeOnKey(console: rakp.Console, bmc: rakp.Bmc, key: KeyObject, signal: AbortSignal): Promise<void> {
    const what = this.#step("RAKP 3");
    const tag = this.#nextTag();
    const message = rakp.encodeRakp3(tag, console, bmc);
    const answer = await this.#ask(what, PAYLOAD.rakp3, message, PAYLOAD.rakp4, signal, (payload) =>
      rakp.parseRakp4(payload, tag, console),
    );
    if (answer.kind === "Refused") throw refusal(what, answer.status);
    if (rakp.provesSessionKey(console, bmc, key, answer.code)) return;
    // User and password were correct, so this does not count against the account.
    if (this.#keys.bmcKey !== undefined) {
      throw new BmcError("Unsupported", `${what}: the key (K_G) is not the one of the BMC, or the BMC has none`);
    }
    if (!this.#hasBmcKey) throw new BmcError("BadResponse", `${what}: the BMC has computed another session key`);
    const next = "add it to the Secret as kg, or set IRONFENCE_BMC_KG";
    throw new BmcError("Unsupported", `${what}: the BMC has its own key (K_G), and none is configured: ${next}`);
  }

  /**
   * Raises the privilege, because a session begins with the lowest one. A BMC may refuse here what it granted before.
   */
  async #raisePrivilege(session: IpmiSession, privilege: Privilege, signal: AbortSignal): Promise<void> {
    const what = this.#step("set privilege");
    const waitsMs = growingWaits(this.#options.answerTimeoutMs);
    try {
      for (const level of new Set([privilege, PRIVILEGE.operator])) {
        const { answer } = await session.command(what, { netFn: 0x06, command: 0x3b, data: [level] }, waitsMs, signal);
        if (answer.completionCode === 0) return;
        // 80h to 82h: the level is above a limit of user or channel.
        const isLimit = answer.completionCode >= 0x80 && answer.completionCode <= 0x82;
        if (!isLimit) throw completionFailure(what, answer.completionCode);
      }
      throw new BmcError("PrivilegeTooLow", `${what}: the user may not act as operator`);
    } catch (error) {
      session.sendClose();
      throw error;
    }
  }

  /**
   * Sends a step of the handshake once. A single step is never repeated, because the keys may have changed in the
   * meantime.
   */
  async #ask<T>(
    what: string,
    requestType: number,
    request: Buffer,
    answerType: number,
    signal: AbortSignal,
    parse: (payload: Buffer) => T | undefined,
  ): Promise<T> {
    const receive = (datagram: Buffer): Received<T> => {
      const packet = parsePacket(datagram);
      if (packet?.version !== "2.0" || packet.payloadType !== answerType) return { dropped: "another datagram" };
      const answer = parse(packet.payload);
      return answer === undefined ? { dropped: "an answer to something else, or a damaged one" } : { answer };
    };
    const waitMs = this.#options.answerTimeoutMs * FIRST_WAIT_SHARE * 2 ** this.#stalls;
    try {
      const encode = (): Buffer => outsideSession(requestType, request);
      return (await this.#channel.exchange({ what, waitsMs: [waitMs], encode, receive }, signal)).answer;
    } catch (error) {
      if (error instanceof BmcError && error.code !== "Unreachable") throw new Stalled(error);
      throw error;
    }
  }

  #refuse(bmcSessionId: number): void {
    const message = rakp.encodeRakp3Refusal(this.#nextTag(), WRONG_INTEGRITY_CODE, bmcSessionId);
    this.#channel.send(outsideSession(PAYLOAD.rakp3, message));
  }

  #nextTag(): number {
    this.#tag = (this.#tag + 1) % 256;
    return this.#tag;
  }

  #step(name: string): string {
    return `${this.#options.address.text}: login: ${name}`;
  }
}

function outsideSession(payloadType: number, payload: Buffer): Buffer {
  return encodePlus({ payloadType, encrypted: false, authenticated: false, sessionId: 0, sequence: 0 }, payload);
}

function refusal(what: string, status: number): Error {
  const refusal = new LoginRefusal(what, status);
  return OUT_OF_STEP.has(status) ? new Stalled(refusal) : refusal;
}
