import type { NetSnmp, NetSnmpSession, NetSnmpUser, NetSnmpVarbind } from "net-snmp";
import { decodeVarbinds } from "./decode.ts";
import { GuardedSocket } from "./guarded-socket.ts";
import type { Answers } from "./values.ts";
import type { SnmpAddress } from "../../interface/address.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import type { SnmpConfig } from "../../interface/device-config.ts";
import { BmcError } from "../../interface/errors.ts";
import { abortReason } from "../../../runtime/clock.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";

/** How long to wait for an answer to each request of a read. After the last wait the read fails. */
const READ_WAITS_MS = [800, 1_600, 3_200, 6_400];
/** The timeout of net-snmp for a request. It is never reached, because the caller's deadline is shorter. */
const REQUEST_MS = 120_000;
/** How many derived keys the cache of net-snmp keeps, for all PDUs: to derive one takes milliseconds. */
const KEYS_MAX = 256;
/** The shortest password that PDUs accept (RFC 3414 section 11.2). */
const PASSWORD_LENGTH_MIN = 8;

const AUTH_NAMES = {
  "SHA-512": "sha512",
  "SHA-384": "sha384",
  "SHA-256": "sha256",
  "SHA-224": "sha224",
  SHA: "sha",
  MD5: "md5",
} as const;
const PRIV_NAMES = { AES: "aes", "AES-256": "aes256b", "AES-256-C": "aes256r" } as const;

/** The error-status values of RFC 3416 with an error code of their own. Any other value is `Refused`. */
const ERRORS: Readonly<
  Record<number, { code: "BadResponse" | "PrivilegeTooLow" | "SystemNotFound" | "Busy"; why: string }>
> = {
  1: { code: "BadResponse", why: "the answer would be too long (tooBig)" },
  2: { code: "SystemNotFound", why: "there is no such object (noSuchName)" },
  4: { code: "PrivilegeTooLow", why: "the user may only read (readOnly)" },
  6: { code: "PrivilegeTooLow", why: "the user has no access (noAccess)" },
  11: { code: "SystemNotFound", why: "there is no such object (noCreation)" },
  13: { code: "Busy", why: "it has no resources now (resourceUnavailable)" },
  16: { code: "PrivilegeTooLow", why: "the user may not do this (authorizationError)" },
  17: { code: "PrivilegeTooLow", why: "the object is not writable (notWritable)" },
  18: { code: "SystemNotFound", why: "there is no such object (inconsistentName)" },
};

/** A connection to the SNMP engine of one PDU. One call at a time. */
export class SnmpSession {
  readonly #snmp: NetSnmp;
  readonly #socket: GuardedSocket;
  readonly #session: NetSnmpSession;
  readonly #clock: Clock;

  private constructor(snmp: NetSnmp, socket: GuardedSocket, session: NetSnmpSession, clock: Clock) {
    this.#snmp = snmp;
    this.#socket = socket;
    this.#session = session;
    this.#clock = clock;
  }

  /**
   * Loads net-snmp, so that only agents with PDUs use memory for it, and opens a socket. Nothing is sent. @throws
   * BmcError
   */
  static async open(
    address: SnmpAddress,
    login: BmcCredentials,
    config: SnmpConfig,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<SnmpSession> {
    const { default: snmp } = await import("net-snmp");
    const isV3 = config.version !== "v2c";
    const level = { isAuthenticated: true, isEncrypted: config.securityLevel !== "authNoPriv" };
    const socket = await GuardedSocket.open(address, isV3 ? level : undefined, signal);
    const options = {
      version: isV3 ? snmp.Version3 : snmp.Version2c,
      port: address.port,
      // `#call` repeats requests, because an order must not be repeated.
      retries: 0,
      timeout: REQUEST_MS,
      idBitsSize: 32,
      reportOidMismatchErrors: true,
      strictIntRangeChecks: true,
      dgramModule: { createSocket: () => socket },
    } as const;
    const { authToKeyCache } = snmp.Authentication;
    if (Object.keys(authToKeyCache).length > KEYS_MAX)
      for (const key of Object.keys(authToKeyCache)) delete authToKeyCache[key];
    const session = isV3
      ? snmp.createV3Session(address.hostname, userOf(snmp, login, config), options)
      : snmp.createSession(address.hostname, login.password.reveal(), options);
    // net-snmp emits an error for a datagram that it cannot parse. Without a listener it would end the process.
    session.on("error", () => undefined);
    return new SnmpSession(snmp, socket, session, clock);
  }

  /**
   * Reads objects in one request, and sends it again while there is no answer.
   *
   * @throws BmcError; the reason of `signal` on abort.
   */
  read(what: string, oids: readonly string[], signal: AbortSignal): Promise<Answers> {
    return this.#call(what, signal, READ_WAITS_MS, (done) => {
      this.#session.get([...oids], done);
    }).then((varbinds) => decodeVarbinds(what, oids, varbinds));
  }

  /**
   * Writes one INTEGER, once. If this resolves, the PDU has carried out the order. If there is no answer, it may have.
   * If it reports an error, it has not.
   *
   * @throws BmcError; the reason of `signal` on abort.
   */
  async order(
    what: string,
    { oid, value }: { oid: string; value: number },
    mayTransmit: () => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const type = this.#snmp.ObjectType["Integer"] ?? 2;
    this.#socket.beginOrder(what, mayTransmit);
    try {
      await this.#call(what, signal, [REQUEST_MS], (done) => {
        this.#session.set([{ oid, type, value }], done);
      });
    } finally {
      this.#socket.endOrder();
    }
  }

  close(): void {
    this.#session.close();
  }

  /**
   * The first valid answer to any of the requests is the result. A refusal that a further request would not change ends
   * the call.
   */
  #call(
    what: string,
    signal: AbortSignal,
    waitsMs: readonly number[],
    send: (done: (error: Error | null, varbinds?: NetSnmpVarbind[]) => void) => void,
  ): Promise<readonly NetSnmpVarbind[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly NetSnmpVarbind[]>();
    let sent = 0;
    let isOver = false;
    let problem: BmcError | undefined;
    let timer: Timer | undefined;
    const end = (settle: () => void): void => {
      if (isOver) return;
      isOver = true;
      timer?.cancel();
      signal.removeEventListener("abort", onAbort);
      this.#socket.onRefusal = () => undefined;
      settle();
      this.#session.cancelRequests(new Error("the call is over"));
    };
    const onAbort = (): void => end(() => reject(abortReason(signal)));
    const fail = (error: BmcError): void => {
      problem = error;
      if (!error.retryable || error.code === "Unreachable" || sent >= waitsMs.length) end(() => reject(error));
      else transmit();
    };
    const transmit = (): void => {
      timer?.cancel();
      const waitMs = waitsMs[sent];
      if (waitMs === undefined) {
        end(() => reject(problem ?? this.#noAnswer(what)));
        return;
      }
      sent += 1;
      timer = this.#clock.schedule(waitMs, transmit);
      let isAnswered = false;
      try {
        send((error, varbinds = []) => {
          if (isOver || isAnswered) return;
          isAnswered = true;
          if (error === null) end(() => resolve(varbinds));
          else fail(this.#failure(what, error));
        });
      } catch (error) {
        end(() => reject(new BmcError("Unsupported", `${what}: cannot be sent (${nameOf(error)})`)));
      }
    };
    if (signal.aborted) return Promise.reject(abortReason(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    this.#socket.onRefusal = (refusal) => fail(new BmcError(refusal.code, `${what}: ${refusal.message}`));
    transmit();
    return promise;
  }

  #noAnswer(what: string): BmcError {
    const { dropped, ignoresEncrypted } = this.#socket;
    if (dropped === undefined) {
      const why = ignoresEncrypted ? " to encrypted requests: compare privProtocol and its password with the PDU" : "";
      return new BmcError("Timeout", `${what}: no answer${why}`);
    }
    return new BmcError("BadResponse", `${what}: no usable answer; the last one was ${dropped}`);
  }

  /** Errors of net-snmp may contain the user with its keys, so only their status is kept. */
  #failure(what: string, error: Error): BmcError {
    if (error instanceof BmcError) return error;
    if (error instanceof this.#snmp.RequestFailedError) {
      const { code, why } = ERRORS[error.status] ?? { code: "Refused", why: `error-status ${error.status}` };
      return new BmcError(code, `${what}: the PDU refused: ${why}`);
    }
    return new BmcError("BadResponse", `${what}: the answer is not valid (${nameOf(error)})`);
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function userOf(snmp: NetSnmp, login: BmcCredentials, config: SnmpConfig): NetSnmpUser {
  const {
    securityLevel = "authPriv",
    authProtocol = "SHA-256",
    privProtocol = "AES",
    privPassword = login.password,
  } = config;
  const user = {
    name: login.username,
    level: snmp.SecurityLevel[securityLevel],
    authProtocol: numberOf(snmp.AuthProtocols, AUTH_NAMES[authProtocol]),
    authKey: login.password.reveal(),
  };
  if (securityLevel === "authNoPriv") return user;
  return {
    ...user,
    privProtocol: numberOf(snmp.PrivProtocols, PRIV_NAMES[privProtocol]),
    privKey: privPassword.reveal(),
  };
}

function numberOf(names: Readonly<Record<string, number | string>>, name: string): number {
  const value = names[name];
  if (typeof value !== "number") throw new BmcError("Unsupported", `net-snmp does not know ${name}`);
  return value;
}

/** @throws BmcError AuthFailed for a login that no PDU accepts. */
export function requireUsable(login: BmcCredentials, config: SnmpConfig): void {
  const { version = "v3", privPassword } = config;
  const password = login.password.reveal();
  if (version === "v2c") {
    if (password.length === 0) throw new BmcError("AuthFailed", "SNMPv2c needs a community");
    return;
  }
  if (!/^[\x21-\x7e]{1,32}$/.test(login.username)) {
    throw new BmcError("AuthFailed", "a user of SNMPv3 must have 1 to 32 ASCII characters and no blanks");
  }
  const shortest = Math.min(password.length, (privPassword?.reveal() ?? password).length);
  if (shortest < PASSWORD_LENGTH_MIN) {
    throw new BmcError("AuthFailed", `a password of SNMPv3 must have at least ${PASSWORD_LENGTH_MIN} characters`);
  }
}
