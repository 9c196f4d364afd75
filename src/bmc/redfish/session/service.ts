import { failure, lacksPrivilege, mustChangePassword } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import { brokeOff } from "../http/connection.ts";
import type { Call, Connection } from "../http/connection.ts";
import { stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { endSession, AbandonedSessions } from "./abandoned-sessions.ts";
import { logIn } from "./login.ts";
import type { Access, BasicAccess } from "./login.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { SentSecrets } from "../http/sent-secrets.ts";
import { REDIRECTS, ServiceRoot } from "./service-root.ts";
import type { DeviceDeps } from "../../interface/driver.ts";
import { BmcError, orderNotAllowed } from "../../interface/errors.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import type { LoginBreaker } from "../../gate/login-breaker.ts";
import type { LoginThrottle } from "../../gate/login-throttle.ts";
import { RESTART_MS_MIN } from "../../gate/possible-restarts.ts";
import type { BmcGate } from "../../gate/bmc-gate.ts";
import type { BmcMemory } from "../../gate/bmc-memory.ts";
import type { Mutex } from "../../gate/mutex.ts";
import { sleep } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../telemetry/logger.ts";

/**
 * The deadline for the end of the session: some BMCs need 6 s for an answer, and a login in progress comes first.
 */
const CLOSE_TIMEOUT_MS = 15_000;
/** The part of the time of a call that its login may take. */
const LOGIN_SHARE = 0.9;
/** How many new sessions may be denied in one call: a BMC with a full session table evicts them. */
const SESSIONS_TRIED_MAX = 3;
/** How many 401s in a row mean that a session is lost: BMCs of HPE, AMI and NVIDIA deny valid sessions at random. */
const DENIALS_MAX = 3;
/** If no session was free, one is requested again after this time. */
const SESSION_AGAIN_MS = 60_000;
const NO_SESSION_FREE = "no session is free, and basic authentication is refused";

/** A resource that was read just now. */
export interface Resource {
  /** Its path, after a redirect within the service. */
  path: string;
  body: JsonObject;
  etag: string | undefined;
  /** The time of the answer by the clock of the BMC, from its header. */
  date: string | undefined;
  /** Whether a cache answered instead of the BMC, although the request forbids it. */
  isStale: boolean;
}

/** Checks right before each transmission whether the call may be sent. `isAgain`: it was sent before, and denied. */
export type Precondition = (signal: AbortSignal, isAgain: boolean) => Promise<void>;

/** An authenticated Redfish service: logs in on first use, and ends its session when closed. */
export class Service {
  readonly #connection: Connection;
  readonly #login: BmcCredentials;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #isOrderAllowed: () => boolean;
  readonly #lifetime = new AbortController();
  readonly #breaker: LoginBreaker;
  readonly #throttle: LoginThrottle;
  readonly #memory: BmcMemory;
  readonly #root: ServiceRoot;
  readonly #abandoned: AbandonedSessions;
  /** One untried login at a time at one BMC, so that of many drivers with one wrong password only one tries it. */
  readonly #mutex: Mutex;
  readonly #releaseMutex: () => void;
  #access: Promise<Access> | undefined;
  /** When a session is requested again, if none was free. */
  #sessionAgainAtMs = Infinity;
  /** When the BMC last gave an authenticated answer. */
  #knownAtMs = -Infinity;
  /** 401s since then, in the present session. */
  #denials = 0;
  #basicAccepted = false;
  /** Whether a 401 to working basic authentication was taken for spurious, and no other answer has come since. */
  #hasSpurious401 = false;
  #logins = 0;
  /** Interruptions of the BMC, each of which may have been a restart. */
  #interruptions = 0;
  /** The refusal of our credentials. It is kept, because more tries lock accounts. */
  #refusal: BmcError | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: {
    connection: Connection;
    login: BmcCredentials;
    callTimeoutMs: number;
    gate: BmcGate;
    deps: DeviceDeps;
  }) {
    this.#connection = options.connection;
    this.#login = options.login;
    this.#callTimeoutMs = options.callTimeoutMs;
    this.#clock = options.deps.clock;
    this.#logger = options.deps.logger;
    this.#isOrderAllowed = options.deps.isOrderAllowed ?? (() => true);
    this.#breaker = options.gate.loginBreaker;
    this.#throttle = options.gate.loginThrottle;
    this.#memory = options.gate.memory;
    this.#root = new ServiceRoot({
      origin: this.origin,
      memory: this.#memory,
      send: (call, signal) => this.#readOnce(call, signal),
      onMissing: () => {
        this.#interruptions += 1;
        this.#memory.possibleRestarts.add(this.origin);
      },
    });
    const { mutex, release } = options.gate.mutexes.acquire(this.origin);
    this.#mutex = mutex;
    this.#releaseMutex = release;
    this.#abandoned = new AbandonedSessions({
      connection: this.#connection,
      clock: this.#clock,
      logger: this.#logger,
      timeoutMs: this.#closeTimeoutMs,
    });
  }

  get #closeTimeoutMs(): number {
    return Math.min(CLOSE_TIMEOUT_MS, this.#callTimeoutMs);
  }

  get origin(): string {
    return this.#connection.origin;
  }

  /** Until when the certificate is valid that the service has shown last. */
  get certificateUntilMs(): number | undefined {
    return this.#connection.certificateUntilMs;
  }

  /** What a text of the BMC must not show to others. */
  get sentSecrets(): SentSecrets {
    return this.#connection.sentSecrets;
  }

  get username(): string {
    return this.#login.username;
  }

  get #account(): string {
    return `${this.origin} ${this.username}`;
  }

  /** How often a login has succeeded. At each one the name of the origin may lead to another BMC. */
  get logins(): number {
    return this.#logins;
  }

  /** How often a request has failed, a session was lost, or the BMC was not ready: it may have restarted each time. */
  get interruptions(): number {
    return this.#interruptions;
  }

  /** Whether a short time ago the BMC was unreachable, or denied a session that it had given. */
  get mayHaveRestarted(): boolean {
    return this.#memory.possibleRestarts.has(this.origin);
  }

  /** The service root, which is read once. */
  root(signal: AbortSignal): Promise<JsonObject> {
    return this.#root.read(AbortSignal.any([signal, this.#lifetime.signal]));
  }

  /** Reads a resource. @throws BmcError for everything but a JSON object. */
  async get(path: string, signal: AbortSignal): Promise<Resource> {
    const resource = await this.find(path, signal);
    if (resource === undefined)
      throw new BmcError("BadResponse", `GET ${this.origin}${path}: there is no such resource`);
    return resource;
  }

  /**
   * Reads a resource, if it exists. A connection that was closed is opened again once, and one redirect within the service is
   * followed (iLO adds a slash to its paths that way).
   *
   * @throws BmcError for everything but a JSON object and "not found".
   */
  async find(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    let at = path;
    let answer = await this.#authenticated({ method: "GET", path: at }, signal);
    if (REDIRECTS.has(answer.status)) {
      at = pathOnOrigin(this.origin, answer.header("location"), `the redirect from ${path}`);
      answer = await this.#authenticated({ method: "GET", path: at }, signal);
    }
    if (answer.status === 404 || answer.status === 410) return undefined;
    if (answer.status !== 200) throw failure(`GET ${this.origin}${at}`, answer);
    this.#memory.redfishOrigins.add(this.origin);
    const { body } = answer;
    const etag = answer.header("etag") ?? stringAt(body, "@odata.etag");
    const isStale = Number(answer.header("age") ?? 0) > 0;
    return { path: at, body, etag, date: answer.header("date"), isStale };
  }

  /**
   * Reads a resource that is useful but not required: once, with the present access. If the account gets a 401 for it, the
   * session stays.
   *
   * @returns undefined for everything but a resource. @throws BmcError if there is no answer.
   */
  async getOptional(path: string, callerSignal: AbortSignal): Promise<JsonObject | undefined> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    const { headers } = await this.#currentAccess();
    const answer = await this.#send({ method: "GET", path, headers }, signal);
    return answer.status === 200 ? answer.body : undefined;
  }

  /** Reads a task monitor, with any status. */
  monitor(path: string, signal: AbortSignal): Promise<RedfishAnswer> {
    return this.#authenticated({ method: "GET", path }, signal);
  }

  /**
   * Sends a change to the host, at most once, and returns any answer that shows that the BMC received it.
   *
   * @param check called before each transmission, in the login that is used for it. If it throws, nothing is sent.
   * @throws BmcError if there is no such answer: it is then unknown whether the change took effect.
   */
  change(call: Call & { method: "POST" | "PATCH" }, check: Precondition, signal: AbortSignal): Promise<RedfishAnswer> {
    return this.#authenticated(call, signal, check);
  }

  /** Ends the session, whatever has happened before, and closes the connection. Never throws. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#lifetime.abort(new BmcError("Aborted", `${this.origin}: closed`));
    const login = this.#access;
    const unaborted = new AbortController().signal;
    try {
      await withDeadline(this.#clock, "close", this.#closeTimeoutMs, unaborted, async (signal) => {
        // A login that failed was reported to its caller, and left no session.
        const access = await login?.catch(() => undefined);
        const session = access?.kind === "Session" ? access : undefined;
        const ended = session && endSession(this.#connection, session, signal);
        this.#abandoned.end(session?.path);
        await Promise.all([ended, this.#abandoned.ended()]);
      });
    } catch (error) {
      this.#logger.warn({ origin: this.origin, err: error }, "redfish session not ended");
    } finally {
      this.#releaseMutex();
      await this.#connection.destroy().catch(() => undefined);
    }
  }

  /**
   * Sends an authenticated call. A 401 means that nothing was done, so the call is sent again: first in the same session, because
   * some BMCs deny sessions at random, then after a new login.
   */
  async #authenticated(call: Call, callerSignal: AbortSignal, check?: Precondition): Promise<RedfishAnswer> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    let isAgain = false;
    for (let logins = 1; ; isAgain = true) {
      signal.throwIfAborted();
      if (this.#refusal !== undefined) throw this.#refusal;
      let login = this.#currentAccess();
      let access = await login;
      await check?.(signal, isAgain);
      // The reads of the check may have needed another login. That login is the one that was checked.
      login = this.#access ?? login;
      access = await login;
      const answer = await this.#sendWith(access, login, call, signal);
      if (answer.status !== 401 || mustChangePassword(answer)) {
        // Spurious 401s with other answers in between do not add up to a refusal.
        if (this.#hasSpurious401) this.#breaker.recordAccepted(this.origin, this.#login);
        this.#hasSpurious401 = false;
        this.#knownAtMs = this.#clock.monotonicMs();
        this.#denials = 0;
        if (access.kind === "Session") this.#abandoned.end(access.path);
        return answer;
      }
      // A session that was just given has not ended, so the account lacks the privilege.
      const isLacking = lacksPrivilege(answer) && (access.kind === "Basic" || logins > 1);
      if (isLacking) return answer;
      if (access.kind === "Basic") {
        this.#interruptions += 1;
        await this.#waitForSpurious(call, login, access, signal);
        continue;
      }
      this.#denials += 1;
      const isLost = this.#denials >= DENIALS_MAX || lacksPrivilege(answer);
      // A session that works again at once does not mean a restart. After a while without answers the BMC may have restarted.
      if (isLost || this.#clock.monotonicMs() - this.#knownAtMs > RESTART_MS_MIN) {
        this.#interruptions += 1;
        this.#memory.possibleRestarts.add(this.origin);
      }
      if (!isLost) continue;
      this.#drop(login, access);
      if (logins === SESSIONS_TRIED_MAX) {
        // User and password were correct each time, so they are not the reason why the session was denied.
        const what = `${call.method} ${this.origin}${call.path}: HTTP 401`;
        throw new BmcError("Busy", `${what}: the BMC denies each session that it has just given, ${logins} in a row`);
      }
      logins += 1;
    }
  }

  #currentAccess(): Promise<Access> {
    if (this.#clock.monotonicMs() >= this.#sessionAgainAtMs) this.#access = undefined;
    this.#access ??= this.#logIn();
    return this.#access;
  }

  /** Makes the next call log in again. */
  #drop(login: Promise<Access>, access: Access): void {
    if (this.#access !== login) return;
    this.#access = undefined;
    // The BMC may accept a session again that it denies now.
    if (access.kind === "Session") this.#abandoned.add(access);
  }

  async #sendWith(access: Access, login: Promise<Access>, call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    const authenticated = { ...call, headers: { ...call.headers, ...access.headers } };
    if (access.kind === "Session") return this.#send(authenticated, signal);
    if (!this.#basicAccepted) return this.#tryBasic(authenticated, login, access, signal);
    // Each request contains the password. If it was refused for one device, the others do not send it either.
    this.#breaker.checkRefused(this.origin, this.#login, this.origin);
    return this.#send(authenticated, signal);
  }

  /** The first use of basic authentication is its login: it shows whether the credentials are accepted. */
  #tryBasic(call: Call, login: Promise<Access>, access: BasicAccess, signal: AbortSignal): Promise<RedfishAnswer> {
    return this.#mutex.run(signal, async () => {
      this.#breaker.check(this.origin, this.#login, this.origin);
      for (;;) {
        const answer = await this.#send(call, signal);
        if (answer.status !== 401 || lacksPrivilege(answer)) {
          this.#basicAccepted = true;
          this.#memory.basicRefused.delete(this.#account);
          this.#breaker.recordAccepted(this.origin, this.#login);
          return answer;
        }
        this.#interruptions += 1;
        // The next login starts only after this is settled.
        await this.#waitForSpurious(call, login, access, signal);
      }
    });
  }

  /** Waits until basic authentication may be tried again after a 401. @throws BmcError if it may not. */
  async #waitForSpurious(call: Call, login: Promise<Access>, access: BasicAccess, signal: AbortSignal): Promise<void> {
    const what = `${call.method} ${this.origin}${call.path}`;
    const pauseMs = this.#breaker.recordSpurious(this.origin, this.#login);
    if (pauseMs !== undefined) {
      this.#hasSpurious401 = true;
      return sleep(this.#clock, pauseMs, signal);
    }
    if (access.sessionsFull && !this.#basicAccepted) {
      this.#memory.basicRefused.add(this.#account);
      this.#drop(login, access);
      throw new BmcError("Busy", `${what}: ${NO_SESSION_FREE}`);
    }
    this.#breaker.recordRefused(this.origin, this.#login);
    this.#refusal = new BmcError("AuthFailed", `${what}: HTTP 401: user or password refused`);
    throw this.#refusal;
  }

  async #send(call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    try {
      const isRead = call.method === "GET";
      if (!isRead && !this.#isOrderAllowed()) throw orderNotAllowed(`${call.method} ${this.origin}${call.path}`);
      const answer = isRead ? await this.#readOnce(call, signal) : await this.#connection.send(call, signal);
      if (answer.status === 503) this.#interruptions += 1;
      return answer;
    } catch (error) {
      if (error instanceof BmcError && error.code !== "Aborted") this.#interruptions += 1;
      this.#notePossibleRestart(error);
      throw error;
    }
  }

  #notePossibleRestart(error: unknown): void {
    if (error instanceof BmcError && error.code === "Unreachable") this.#memory.possibleRestarts.add(this.origin);
  }

  /** A read may be sent again: it changes nothing. */
  async #readOnce(call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    try {
      return await this.#connection.send(call, signal);
    } catch (error) {
      if (!brokeOff(error)) throw error;
      this.#interruptions += 1;
      return await this.#connection.send(call, signal);
    }
  }

  /**
   * Logs in with a deadline of its own instead of that of the call: a login that is aborted halfway would leave an unknown session
   * behind, and BMCs have few.
   */
  #logIn(): Promise<Access> {
    const what = `login at ${this.origin}`;
    const unaborted = new AbortController().signal;
    const access = this.#mutex.run(this.#lifetime.signal, () =>
      withDeadline(this.#clock, what, LOGIN_SHARE * this.#callTimeoutMs, unaborted, (signal) => this.#tryLogin(signal)),
    );
    access.catch((error: unknown) => {
      if (error instanceof BmcError && error.code === "AuthFailed") this.#refusal = error;
      // The next call logs in again, unless we were refused.
      if (this.#access === access) this.#access = undefined;
    });
    return access;
  }

  async #tryLogin(signal: AbortSignal): Promise<Access> {
    await this.#throttle.start();
    signal.throwIfAborted();
    this.#breaker.check(this.origin, this.#login, this.origin);
    const startMs = this.#clock.monotonicMs();
    await this.#root.refuseRedirect(signal);
    const hasTime = (): boolean => {
      const spentMs = this.#clock.monotonicMs() - startMs;
      return 2 * spentMs < LOGIN_SHARE * this.#callTimeoutMs;
    };
    for (;;) {
      try {
        const access = await logIn(
          {
            connection: this.#connection,
            login: this.#login,
            readRoot: (signal) => this.#root.read(signal),
            unusualPaths: this.#memory.unusualSessionPaths,
            hasTime,
          },
          signal,
        );
        const isFull = access.kind === "Basic" && access.sessionsFull;
        // A refusal for another device does not matter if basic authentication has worked for this one.
        if (isFull && !this.#basicAccepted && this.#memory.basicRefused.has(this.#account)) {
          throw new BmcError("Busy", `login at ${this.origin}: ${NO_SESSION_FREE}`);
        }
        const nowMs = this.#clock.monotonicMs();
        this.#sessionAgainAtMs = isFull ? nowMs + SESSION_AGAIN_MS : Infinity;
        this.#knownAtMs = nowMs;
        this.#denials = 0;
        if (access.kind === "Basic" && access.unusable !== undefined) this.#abandoned.add(access.unusable);
        this.#logins += 1;
        // The first use of basic authentication shows whether it is accepted.
        if (access.kind === "Session") this.#breaker.recordAccepted(this.origin, this.#login);
        return access;
      } catch (error) {
        this.#notePossibleRestart(error);
        if (!(error instanceof BmcError) || error.code !== "AuthFailed") throw error;
        const pauseMs = this.#breaker.recordRefusedOrSpurious(this.origin, this.#login);
        if (pauseMs === undefined) throw error;
        await sleep(this.#clock, pauseMs, signal);
      }
    }
  }
}
