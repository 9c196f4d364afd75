import type { AbandonedSessions } from "./abandoned-sessions.ts";
import type { AccountDeps } from "./guarded-login.ts";
import { GuardedLogin, NO_SESSION_FREE } from "./guarded-login.ts";
import type { Access, BasicAccess } from "./login.ts";
import { lacksPrivilege, mustChangePassword } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { Call } from "../http/connection.ts";
import { RESTART_MS_MIN } from "../../gate/memory/possible-restarts.ts";
import { BmcError } from "../../interface/errors.ts";
import { sleep } from "../../../runtime/clock.ts";

/** How many sessions one call opens if each is denied: a BMC with a full session table evicts new ones. */
const SESSIONS_TRIED_MAX = 3;
/** How many 401s in a row mean that a session is lost: BMCs of HPE, AMI and NVIDIA deny valid sessions at random. */
const DENIALS_MAX = 3;
/** If no session was free, one is requested again after this time. */
const SESSION_AGAIN_MS = 60_000;

/** Throws right before a transmission if the call may not be sent. `isAgain`: the call was sent before, and denied. */
export type RequestPrecondition = (signal: AbortSignal, isAgain: boolean) => Promise<void>;

export interface AuthenticatedRequestsDeps extends AccountDeps {
  abandoned: AbandonedSessions;
}

/**
 * Sends requests with the access of one account. The first request logs in, and a request that is denied is sent again.
 */
export class AuthenticatedRequests {
  readonly #deps: AuthenticatedRequestsDeps;
  readonly #login: GuardedLogin;
  readonly #lifetime = new AbortController();
  #access: Promise<Access> | undefined;
  /** If no session was free: when one is requested again. */
  #sessionAgainAtMs = Infinity;
  /** When the BMC last gave an authenticated answer. */
  #knownAtMs = -Infinity;
  /** How many times the BMC has answered 401 since then, in the present session. */
  #denials = 0;
  #isBasicAccepted = false;
  /** Whether a 401 to basic authentication that had worked was taken for spurious, and no other answer has followed. */
  #hasSpurious401 = false;
  #logins = 0;
  /** The refusal of the credentials. It is kept, because further attempts lock accounts. */
  #refusal: BmcError | undefined;

  constructor(deps: AuthenticatedRequestsDeps) {
    this.#deps = deps;
    this.#login = new GuardedLogin({
      ...deps,
      isBasicAccepted: () => this.#isBasicAccepted,
      onAccess: (access) => this.#recordAccess(access),
    });
  }

  /** How many logins have succeeded. After each of them the name in the origin may lead to another BMC. */
  get logins(): number {
    return this.#logins;
  }

  /** Ends all requests, and returns the access that is left, if any. */
  async end(): Promise<Access | undefined> {
    this.#lifetime.abort(new BmcError("Aborted", `${this.#origin}: closed`));
    // A failed login was reported to its caller, and there is no session to end.
    return this.#access?.catch(() => undefined);
  }

  /** A signal that also aborts when the requests end. */
  until(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#lifetime.signal]);
  }

  /** The present access; logs in if there is none. */
  currentAccess(): Promise<Access> {
    if (this.#deps.clock.monotonicMs() >= this.#sessionAgainAtMs) this.#access = undefined;
    this.#access ??= this.#logIn();
    return this.#access;
  }

  /**
   * Sends an authenticated call. A 401 means that nothing was done, so the call is sent again: first in the same
   * session, because some BMCs deny sessions at random, then after a new login.
   */
  async send(call: Call, callerSignal: AbortSignal, check?: RequestPrecondition): Promise<RedfishAnswer> {
    const signal = this.until(callerSignal);
    let isAgain = false;
    for (let logins = 1; ; isAgain = true) {
      signal.throwIfAborted();
      if (this.#refusal !== undefined) throw this.#refusal;
      let login = this.currentAccess();
      let access = await login;
      await check?.(signal, isAgain);
      // The check may have needed another login for its reads. It has then checked that login.
      login = this.#access ?? login;
      access = await login;
      const answer = await this.#sendWith(access, login, call, signal);
      if (answer.status !== 401 || mustChangePassword(answer)) {
        this.#recordAuthenticated(access);
        return answer;
      }
      // A new session has not expired, so the account lacks the privilege.
      const isLacking = lacksPrivilege(answer) && (access.kind === "Basic" || logins > 1);
      if (isLacking) return answer;
      if (access.kind === "Basic") {
        this.#deps.monitored.recordInterruption();
        await this.#waitForSpurious(call, login, access, signal);
        continue;
      }
      if (!this.#recordDenial(answer)) continue;
      this.#drop(login, access);
      if (logins === SESSIONS_TRIED_MAX) {
        // Each login succeeded, so user and password are not the reason for the 401.
        const what = `${call.method} ${this.#origin}${call.path}: HTTP 401`;
        throw new BmcError("Busy", `${what}: the BMC denied ${logins} new sessions in a row`);
      }
      logins += 1;
    }
  }

  get #origin(): string {
    return this.#deps.connection.origin;
  }

  /** Records that an answer has shown the access to be valid. */
  #recordAuthenticated(access: Access): void {
    const { gate, login, clock, abandoned } = this.#deps;
    // Spurious 401s with another answer between them do not add up to a refusal.
    if (this.#hasSpurious401) gate.loginBreaker.recordAccepted(this.#origin, login);
    this.#hasSpurious401 = false;
    this.#knownAtMs = clock.monotonicMs();
    this.#denials = 0;
    if (access.kind === "Session") abandoned.end(access.path);
  }

  /** Records a 401 in the present session. @returns whether the session is lost. */
  #recordDenial(answer: RedfishAnswer): boolean {
    this.#denials += 1;
    const isLost = this.#denials >= DENIALS_MAX || lacksPrivilege(answer);
    // If a session works again at once, the BMC has not restarted. After a longer time without answers it may have.
    if (isLost || this.#deps.clock.monotonicMs() - this.#knownAtMs > RESTART_MS_MIN) {
      this.#deps.monitored.recordPossibleRestart();
    }
    return isLost;
  }

  #recordAccess(access: Access): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const isFull = access.kind === "Basic" && access.sessionsFull;
    this.#sessionAgainAtMs = isFull ? nowMs + SESSION_AGAIN_MS : Infinity;
    this.#knownAtMs = nowMs;
    this.#denials = 0;
    if (access.kind === "Basic" && access.unusable !== undefined) this.#deps.abandoned.add(access.unusable);
    this.#logins += 1;
  }

  /** Drops an access, so that the next call logs in again. */
  #drop(login: Promise<Access>, access: Access): void {
    if (this.#access !== login) return;
    this.#access = undefined;
    // The BMC may later accept a session that it denies now, so it has to be ended.
    if (access.kind === "Session") this.#deps.abandoned.add(access);
  }

  async #sendWith(access: Access, login: Promise<Access>, call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    const { monitored, gate, login: credentials } = this.#deps;
    const authenticated = { ...call, headers: { ...call.headers, ...access.headers } };
    if (access.kind === "Session") return monitored.send(authenticated, signal);
    if (!this.#isBasicAccepted) return this.#tryBasic(authenticated, login, access, signal);
    // Each request contains the password. If it was refused for one device, the others do not send it either.
    gate.loginBreaker.checkRefused(this.#origin, credentials, this.#origin);
    return monitored.send(authenticated, signal);
  }

  /** The first use of basic authentication is its login: it shows whether the credentials are accepted. */
  #tryBasic(call: Call, login: Promise<Access>, access: BasicAccess, signal: AbortSignal): Promise<RedfishAnswer> {
    const { mutex, monitored, gate, account, login: credentials } = this.#deps;
    return mutex.run(signal, async () => {
      gate.loginBreaker.check(this.#origin, credentials, this.#origin);
      for (;;) {
        const answer = await monitored.send(call, signal);
        if (answer.status !== 401 || lacksPrivilege(answer)) {
          this.#isBasicAccepted = true;
          gate.memory.basicRefused.delete(account);
          gate.loginBreaker.recordAccepted(this.#origin, credentials);
          return answer;
        }
        monitored.recordInterruption();
        // The mutex stays held during the wait, so that no other login starts.
        await this.#waitForSpurious(call, login, access, signal);
      }
    });
  }

  /** Waits until basic authentication may be tried again after a 401. @throws BmcError if it may not. */
  async #waitForSpurious(call: Call, login: Promise<Access>, access: BasicAccess, signal: AbortSignal): Promise<void> {
    const { gate, clock, account, login: credentials } = this.#deps;
    const what = `${call.method} ${this.#origin}${call.path}`;
    const pauseMs = gate.loginBreaker.recordSpurious(this.#origin, credentials);
    if (pauseMs !== undefined) {
      this.#hasSpurious401 = true;
      return sleep(clock, pauseMs, signal);
    }
    if (access.sessionsFull && !this.#isBasicAccepted) {
      gate.memory.basicRefused.add(account);
      this.#drop(login, access);
      throw new BmcError("Busy", `${what}: ${NO_SESSION_FREE}`);
    }
    gate.loginBreaker.recordRefused(this.#origin, credentials);
    this.#refusal = new BmcError("AuthFailed", `${what}: HTTP 401: user or password refused`);
    throw this.#refusal;
  }

  #logIn(): Promise<Access> {
    const access = this.#login.run(this.#lifetime.signal);
    access.catch((error: unknown) => {
      if (error instanceof BmcError && error.code === "AuthFailed") this.#refusal = error;
      // The next call logs in again, unless the credentials were refused.
      if (this.#access === access) this.#access = undefined;
    });
    return access;
  }
}
