import { growingWaits, orderWaits } from "./channel.ts";
import type { CipherSuiteId } from "../../interface/cipher-suites.ts";
import { COMPLETION } from "../packets/codes.ts";
import { openIpmiSession } from "./login.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import type { Request, Response } from "../packets/message.ts";
import type { IpmiSession } from "./session.ts";
import type { BmcGate } from "../../gate/bmc-gate.ts";
import type { BmcMemory } from "../../gate/memory/bmc-memory.ts";
import type { Mutex } from "../../gate/limits/mutex.ts";
import type { IpmiAddress } from "../../interface/address.ts";
import type { DeviceDeps, DeviceTimeouts } from "../../interface/driver.ts";
import { BmcError } from "../../interface/errors.ts";
import type { BmcErrorCode } from "../../interface/errors.ts";
import { abortReason, sleep } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import type { Secret } from "../../../runtime/secret.ts";

/**
 * The longest deadline for the answer to a command, including retransmissions. It is shorter if the calls of the device
 * must be shorter.
 */
const ANSWER_TIMEOUT_MS_MAX = 5_000;
/** A session that was idle for this long is replaced: BMCs end idle sessions after about a minute. */
const SESSION_IDLE_MS_MAX = 25_000;
/** The deadline for the end of the session. */
const CLOSE_TIMEOUT_MS = 2_000;
/** How many times a read is sent while the BMC is busy. */
const BUSY_TRIES_MAX = 3;
const BUSY_PAUSE_MS = 300;

/** Failures after which the BMC may have restarted. */
const MAY_BE_RESTART: ReadonlySet<BmcErrorCode> = new Set(["Timeout", "Unreachable", "BadResponse"]);

export interface ClientOptions {
  address: IpmiAddress;
  login: BmcCredentials;
  /** The key (K_G) of the BMC, if it has one. */
  bmcKey: Secret | undefined;
  suites: readonly CipherSuiteId[];
  timeouts: DeviceTimeouts;
  gate: BmcGate;
  deps: DeviceDeps;
}

/** Sends commands to one BMC: logs in on first use, keeps the session while it is used, and ends it when closed. */
export class Client {
  readonly #options: ClientOptions;
  readonly #clock: Clock;
  readonly #gate: BmcGate;
  readonly #memory: BmcMemory;
  readonly #mutex: Mutex;
  readonly #releaseMutex: () => void;
  readonly #answerTimeoutMs: number;
  readonly #lifetime = new AbortController();
  /** The login that is in progress or has succeeded. */
  #session: Promise<IpmiSession> | undefined;
  /** The session that this login opened. */
  #current: IpmiSession | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#clock = options.deps.clock;
    this.#gate = options.gate;
    this.#memory = options.gate.memory;
    const { mutex, release } = options.gate.mutexes.acquire(options.address.key);
    this.#mutex = mutex;
    this.#releaseMutex = release;
    // A session without an answer, the first contact and a login must all fit into one call.
    this.#answerTimeoutMs = Math.min(ANSWER_TIMEOUT_MS_MAX, options.timeouts.callTimeoutMs / 3);
  }

  /** Whether the BMC may have restarted a short time ago: it gave no usable answer to a driver of this process. */
  get mayHaveRestarted(): boolean {
    return this.#memory.possibleRestarts.has(this.#options.address.key);
  }

  /** Records that the BMC has shown its host On. */
  noteHostOn(): void {
    this.#memory.possibleRestarts.delete(this.#options.address.key);
  }

  /**
   * Sends a command that changes nothing. It is sent again if its answer is lost, if the session is gone, or if the BMC
   * is busy.
   *
   * @param what names device and step in errors.
   * @returns the answer, whatever its completion code.
   */
  async read(what: string, request: Request, signal: AbortSignal): Promise<Response> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#readOnce(what, request, signal);
      const { completionCode } = answer;
      const isTransient = completionCode === COMPLETION.busy || completionCode === COMPLETION.duplicate;
      if (!isTransient || tries === BUSY_TRIES_MAX) return answer;
      await sleep(this.#clock, BUSY_PAUSE_MS, signal);
    }
  }

  /**
   * Sends a command that may be carried out twice, but not late: if it was sent more than once, the session is ended
   * after it, so that no delayed copy can take effect after the next order.
   *
   * @param session The session from `session()`. An order never causes a login.
   * @param options.isSentOnce Set for a command that must not be carried out twice. It is never sent again.
   * @throws BmcError Timeout if the answer was lost: it is then unknown whether the command was carried out.
   */
  async order(
    what: string,
    request: Request,
    session: IpmiSession,
    signal: AbortSignal,
    { isSentOnce }: { isSentOnce: boolean } = { isSentOnce: false },
  ): Promise<Response> {
    try {
      const { answer, transmissions } = await this.#command(
        session,
        what,
        request,
        isSentOnce ? [this.#answerTimeoutMs] : orderWaits(this.#answerTimeoutMs),
        signal,
        this.#options.deps.isOrderAllowed,
      );
      if (transmissions > 1) await this.#end(session);
      return answer;
    } catch (error) {
      this.#drop(session, error);
      if (!(error instanceof BmcError) || error.code === "Aborted") throw error;
      const message = `${error.message}; whether it took effect is unknown`;
      throw new BmcError("Timeout", message, { cause: error });
    }
  }

  /**
   * Ends the session, whatever has happened before. Never throws.
   *
   * @param loginGraceMs How long a login in progress may still take. If a login is aborted, the BMC keeps what it
   * reserved for it until that expires.
   */
  close(loginGraceMs = 0): Promise<void> {
    this.#closed ??= this.#close(loginGraceMs);
    return this.#closed;
  }

  async #close(loginGraceMs: number): Promise<void> {
    if (this.#session !== undefined && loginGraceMs > 0) {
      const settled = new AbortController();
      const login = this.#session.catch(() => undefined).finally(() => settled.abort());
      await Promise.race([login, sleep(this.#clock, loginGraceMs, settled.signal).catch(() => undefined)]);
    }
    this.#lifetime.abort(new BmcError("Aborted", `${this.#options.address.text}: closed`));
    // A failed login was reported to its caller, and there is no session to end.
    const session = await this.#session?.catch(() => undefined);
    if (session !== undefined) await this.#end(session);
    this.#releaseMutex();
  }

  async #readOnce(what: string, request: Request, signal: AbortSignal): Promise<Response> {
    const isReused = this.#session !== undefined;
    const waitsMs = growingWaits(this.#answerTimeoutMs);
    const session = await this.session(signal);
    try {
      return (await this.#command(session, what, request, waitsMs, signal)).answer;
    } catch (error) {
      this.#drop(session, error);
      // A BMC that has restarted, or has ended the session, does not answer in it. A new session shows whether it
      // answers at all.
      if (!isReused || !(error instanceof BmcError) || signal.aborted || this.#lifetime.signal.aborted) throw error;
      const fresh = await this.session(signal);
      try {
        return (await this.#command(fresh, what, request, waitsMs, signal)).answer;
      } catch (again) {
        this.#drop(fresh, again);
        throw again;
      }
    }
  }

  #command(
    session: IpmiSession,
    what: string,
    request: Request,
    waitsMs: readonly number[],
    callerSignal: AbortSignal,
    mayTransmit?: () => boolean,
  ): Promise<{ answer: Response; transmissions: number }> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    return this.#mutex.run(signal, () => session.command(what, request, waitsMs, signal, mayTransmit));
  }

  /** The present session, or a new one if there is none or it was idle for too long. */
  async session(signal: AbortSignal): Promise<IpmiSession> {
    const present = await this.#session;
    if (present !== undefined && present.silentMs > SESSION_IDLE_MS_MAX) this.#forget(present);
    signal.throwIfAborted();
    this.#lifetime.signal.throwIfAborted();
    this.#session ??= this.#logIn();
    return this.#session;
  }

  /**
   * Logs in with a deadline of its own instead of that of the call, because others may wait for the same login. The
   * mutex of the BMC is held until the login ends, so that only one of many drivers with the same wrong password tries
   * it.
   */
  #logIn(): Promise<IpmiSession> {
    const { address, login, bmcKey, suites, timeouts } = this.#options;
    const { loginBreaker, loginThrottle } = this.#gate;
    const { provenSuites } = this.#memory;
    const openSession = async (signal: AbortSignal): Promise<IpmiSession> => {
      await loginThrottle.start();
      signal.throwIfAborted();
      loginBreaker.check(address.key, login, address.text);
      const { connectTimeoutMs } = timeouts;
      const answerTimeoutMs = this.#answerTimeoutMs;
      const allowed = provenSuites.allowed(address.key, suites);
      try {
        const clock = this.#clock;
        const options = { address, login, bmcKey, suites: allowed, clock, connectTimeoutMs, answerTimeoutMs };
        const session = await openIpmiSession(options, signal);
        loginBreaker.recordAccepted(address.key, login);
        provenSuites.set(address.key, session.suite);
        if (signal.aborted) {
          session.abandon();
          throw abortReason(signal);
        }
        this.#current = session;
        return session;
      } catch (error) {
        if (error instanceof BmcError && error.code === "AuthFailed") loginBreaker.recordRefused(address.key, login);
        throw allowed.length < suites.length ? withAdvice(error, allowed) : error;
      }
    };
    const what = `${address.text}: login`;
    const session = this.#mutex.run(this.#lifetime.signal, () =>
      withDeadline(this.#clock, what, timeouts.callTimeoutMs, this.#lifetime.signal, openSession),
    );
    session.catch((error: unknown) => {
      this.#notePossibleRestart(error);
      if (this.#session === session) this.#session = undefined;
    });
    return session;
  }

  /** Ends a session and waits a short time for the answer of the BMC. Never throws. */
  async #end(session: IpmiSession): Promise<void> {
    if (!this.#letGo(session)) return;
    const { address, timeouts, deps } = this.#options;
    const timeoutMs = Math.min(CLOSE_TIMEOUT_MS, timeouts.callTimeoutMs);
    const unaborted = new AbortController().signal;
    try {
      await withDeadline(this.#clock, "close", timeoutMs, unaborted, (signal) =>
        this.#mutex.run(signal, () => session.close(`${address.text}: close`, growingWaits(timeoutMs / 2), signal)),
      );
    } catch (error) {
      session.abandon();
      deps.logger.warn({ address: address.text, err: error }, "ipmi session not ended");
    }
  }

  /** Drops a session in which a command has failed. */
  #drop(session: IpmiSession, error: unknown): void {
    this.#notePossibleRestart(error);
    this.#forget(session);
  }

  #notePossibleRestart(error: unknown): void {
    const mayBeRestart = error instanceof BmcError ? MAY_BE_RESTART.has(error.code) : error instanceof DeadlineError;
    if (mayBeRestart) this.#memory.possibleRestarts.add(this.#options.address.key);
  }

  /** Drops a session that the BMC may have ended, without waiting for an answer. */
  #forget(session: IpmiSession): void {
    if (this.#letGo(session)) session.abandon();
  }

  /**
   * Forgets the session. Returns false if it is not the present one, because another call may have opened a new one in
   * the meantime.
   */
  #letGo(session: IpmiSession): boolean {
    if (this.#current !== session) return false;
    this.#current = undefined;
    this.#session = undefined;
    return true;
  }
}

/**
 * A BMC that no longer supports a suite looks like an attacker who wants a weaker one, so the message says what to do.
 */
function withAdvice(error: unknown, allowed: readonly CipherSuiteId[]): unknown {
  if (!(error instanceof BmcError) || error.code !== "Unsupported") return error;
  const why = `suite ${allowed.join(", ")} worked with this BMC before, so no weaker one is tried`;
  const advice = "if the BMC was changed, name another suite in ipmi.cipherSuites";
  return new BmcError(error.code, `${error.message}; ${why}: ${advice}`, { cause: error });
}
