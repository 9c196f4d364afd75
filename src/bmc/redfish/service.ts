import { failure, lacksPrivilege, mustChangePassword } from "./answer.ts";
import type { Answer } from "./answer.ts";
import { brokeOff } from "./connection.ts";
import type { Call, Connection } from "./connection.ts";
import { EMPTY, stringAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { endSession, LeftSessions } from "./left-sessions.ts";
import { logIn } from "./login.ts";
import type { Access, BasicAccess } from "./login.ts";
import { pathOnOrigin } from "./reference.ts";
import type { DeviceDeps } from "../driver.ts";
import { BmcError, orderNotAllowed } from "../errors.ts";
import type { Login } from "../login-breaker.ts";
import { sharedOn } from "../shared.ts";
import type { Shared } from "../shared.ts";
import { RESTART_MS_MIN } from "../silences.ts";
import type { Turn } from "../turn.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../telemetry/logger.ts";

/**
 * Longest that ending the session may take: BMCs that need 6 s for an answer are known, and a login that is under way comes
 * before it.
 */
const CLOSE_TIMEOUT_MS = 15_000;
/** What a login may take of the time of the call that needs it. */
const LOGIN_SHARE = 0.9;
/** Sessions that one call may find denied, of a BMC that has just given them: busy ones evict. */
const SESSIONS_TRIED_MAX = 3;
/** Answers of 401 in a row after which a session counts as lost: HPE's, AMI's and NVIDIA's deny valid ones at random. */
const DENIALS_MAX = 3;
/** After so long without a session, since none was free, one is asked for again. */
const SESSION_AGAIN_MS = 60_000;
const NO_SESSION_FREE = "no session is free, and basic authentication is refused";
const ROOT = "/redfish/v1/";

/** A resource that was read just now. */
export interface Resource {
  /** Where it was found, after a redirect within the service. */
  path: string;
  body: JsonObject;
  etag: string | undefined;
  /** The BMC's own time of the answer, as its header says. */
  date: string | undefined;
  /** Whether a cache answered in the BMC's place, though it was asked not to. */
  isStale: boolean;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);

/** Looks whether something may be sent. `isAgain`: it was sent before, and denied. */
export type Check = (signal: AbortSignal, isAgain: boolean) => Promise<void>;

/** Forbidden, and Upgrade Required (RFC 9110, section 15.5): what a service answers that serves nobody by plain HTTP. */
const NOT_BY_PLAIN_HTTP: ReadonlySet<number> = new Set([403, 426]);

/** An authenticated Redfish service: logs in on first use, and ends its session when closed. */
export class Service {
  readonly #connection: Connection;
  readonly #login: Login;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #mayOrder: () => boolean;
  readonly #lifetime = new AbortController();
  readonly #shared: Shared;
  readonly #breaker: Shared["breaker"];
  readonly #silences: Shared["silences"];
  readonly #left: LeftSessions;
  /** One untried login at a time at one BMC, so that of many drivers with one wrong password one alone tries it. */
  readonly #turn: Turn;
  readonly #releaseTurn: () => void;
  #root: JsonObject | undefined;
  #access: Promise<Access> | undefined;
  /** From when on a session is asked for again, where there was none. */
  #sessionAgainAtMs = Infinity;
  /** When the BMC last gave an answer that shows that it knows us. */
  #knownAtMs = -Infinity;
  /** Answers of 401 since then, in the session that is in use. */
  #denials = 0;
  #basicAccepted = false;
  /** A 401 to basic authentication that has worked was sat out, and nothing has been answered since. */
  #hasStrayed = false;
  #logins = 0;
  /** Gaps in the answers of the BMC: each may have been a restart. */
  #interruptions = 0;
  /** The refusal of our credentials: remembered, because more tries lock accounts. */
  #refusal: BmcError | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: { connection: Connection; login: Login; callTimeoutMs: number; deps: DeviceDeps }) {
    this.#connection = options.connection;
    this.#login = options.login;
    this.#callTimeoutMs = options.callTimeoutMs;
    this.#clock = options.deps.clock;
    this.#logger = options.deps.logger;
    this.#mayOrder = options.deps.mayOrder ?? (() => true);
    this.#shared = sharedOn(this.#clock);
    const { turn, release } = this.#shared.turnOf(this.origin);
    this.#breaker = this.#shared.breaker;
    this.#silences = this.#shared.silences;
    this.#left = new LeftSessions({
      connection: this.#connection,
      clock: this.#clock,
      logger: this.#logger,
      timeoutMs: this.#closeTimeoutMs,
    });
    this.#turn = turn;
    this.#releaseTurn = release;
  }

  get #closeTimeoutMs(): number {
    return Math.min(CLOSE_TIMEOUT_MS, this.#callTimeoutMs);
  }

  get origin(): string {
    return this.#connection.origin;
  }

  get username(): string {
    return this.#login.username;
  }

  get #account(): string {
    return `${this.origin} ${this.username}`;
  }

  /** How often a log-in has succeeded: by the time of the next one the origin's name may lead to another BMC. */
  get logins(): number {
    return this.#logins;
  }

  /** How often a request has failed, a session was gone, or the BMC was not ready: it may have restarted each time. */
  get interruptions(): number {
    return this.#interruptions;
  }

  /** Whether a short time ago the BMC was out of reach, or denied a session that it had given us. */
  get mayHaveRestarted(): boolean {
    return this.#silences.isRecent(this.origin);
  }

  /** The service root, read once: it names collections and changes with the firmware only. */
  root(signal: AbortSignal): Promise<JsonObject> {
    return this.#readRoot(AbortSignal.any([signal, this.#lifetime.signal]));
  }

  async #readRoot(signal: AbortSignal): Promise<JsonObject> {
    if (this.#root !== undefined) return this.#root;
    let answer = await this.#readOnce({ method: "GET", path: ROOT }, signal);
    if (REDIRECTS.has(answer.status)) {
      const path = pathOnOrigin(this.origin, answer.header("location"), "the redirect from the root");
      answer = await this.#readOnce({ method: "GET", path }, signal);
    }
    // DSP0266 wants the root open to all. Where it is not, the well-known places and basic authentication must do.
    if (answer.status === 401) return EMPTY;
    if (answer.status === 404) throw this.#servesNothing();
    if (answer.status !== 200) throw failure(`GET ${this.origin}${ROOT}`, answer);
    this.#root = answer.body;
    return answer.body;
  }

  #servesNothing(): BmcError {
    const what = `${this.origin} serves no Redfish (HTTP 404 at ${ROOT})`;
    if (!this.#shared.served.isRecent(this.origin)) return new BmcError("Unsupported", what);
    this.#interruptions += 1;
    this.#silences.note(this.origin);
    return new BmcError("Busy", `${what}: it did a short time ago, and a BMC that starts may not yet`);
  }

  /** Reads a resource freshly. @throws BmcError for everything but a JSON object. */
  async get(path: string, signal: AbortSignal): Promise<Resource> {
    const resource = await this.find(path, signal);
    if (resource === undefined)
      throw new BmcError("BadResponse", `GET ${this.origin}${path}: there is no such resource`);
    return resource;
  }

  /**
   * Reads a resource freshly, if it exists. A connection that broke off is opened again once, and one redirect within the
   * service is followed (iLO adds a slash to its paths that way).
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
    this.#shared.served.note(this.origin);
    const { body } = answer;
    const etag = answer.header("etag") ?? stringAt(body, "@odata.etag");
    const isStale = Number(answer.header("age") ?? 0) > 0;
    return { path: at, body, etag, date: answer.header("date"), isStale };
  }

  /**
   * Reads what is of use and not needed: once, in the access that we have. An account that gets a 401 for it must lose
   * no session by that.
   *
   * @returns undefined for everything but a resource. @throws BmcError where there is no answer.
   */
  async glance(path: string, callerSignal: AbortSignal): Promise<JsonObject | undefined> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    const { headers } = await this.#currentAccess();
    const answer = await this.#send({ method: "GET", path, headers }, signal);
    return answer.status === 200 ? answer.body : undefined;
  }

  /** Reads a task monitor, whose every status means something. */
  monitor(path: string, signal: AbortSignal): Promise<Answer> {
    return this.#authenticated({ method: "GET", path }, signal);
  }

  /**
   * Sends something that changes the host, at most once, and gives any answer that shows that it was heard.
   *
   * @param check called in the log-in in which the call is about to be sent, each time; where it throws, nothing is sent.
   * @throws BmcError where there is no such answer: whether it took effect is then unknown.
   */
  change(call: Call & { method: "POST" | "PATCH" }, check: Check, signal: AbortSignal): Promise<Answer> {
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
        // A login that failed has reported itself to its caller, and left no session.
        const access = await login?.catch(() => undefined);
        const session = access?.kind === "Session" ? access : undefined;
        const ended = session && endSession(this.#connection, session, signal);
        this.#left.end(session?.path);
        await Promise.all([ended, this.#left.ended()]);
      });
    } catch (error) {
      this.#logger.warn({ origin: this.origin, err: error }, "redfish session not ended");
    } finally {
      this.#releaseTurn();
      await this.#connection.destroy().catch(() => undefined);
    }
  }

  /**
   * Sends with our access. A 401 says that nothing was done, so a call is sent again: in the same session, which some deny at
   * random, then after a login that replaces it.
   */
  async #authenticated(call: Call, callerSignal: AbortSignal, check?: Check): Promise<Answer> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    let isAgain = false;
    for (let logins = 1; ; isAgain = true) {
      signal.throwIfAborted();
      if (this.#refusal !== undefined) throw this.#refusal;
      let login = this.#currentAccess();
      let access = await login;
      await check?.(signal, isAgain);
      // What was read for the check may have taken another login, which is the one that was checked.
      login = this.#access ?? login;
      access = await login;
      const answer = await this.#sendWith(access, login, call, signal);
      if (answer.status !== 401 || mustChangePassword(answer)) {
        // Strays that lie far apart do not add up to a refusal.
        if (this.#hasStrayed) this.#breaker.accepted(this.origin, this.#login);
        this.#hasStrayed = false;
        this.#knownAtMs = this.#clock.monotonicMs();
        this.#denials = 0;
        if (access.kind === "Session") this.#left.end(access.path);
        return answer;
      }
      // Of a session that was just given it is not the end of the session that speaks.
      const isLacking = lacksPrivilege(answer) && (access.kind === "Basic" || logins > 1);
      if (isLacking) return answer;
      if (access.kind === "Basic") {
        this.#interruptions += 1;
        await this.#waitForStray(call, login, access, signal);
        continue;
      }
      this.#denials += 1;
      const isLost = this.#denials >= DENIALS_MAX || lacksPrivilege(answer);
      // A session that is good again at once says nothing of the BMC; it may have restarted where it was not heard of for a while.
      if (isLost || this.#clock.monotonicMs() - this.#knownAtMs > RESTART_MS_MIN) {
        this.#interruptions += 1;
        this.#silences.note(this.origin);
      }
      if (!isLost) continue;
      this.#drop(login, access);
      if (logins === SESSIONS_TRIED_MAX) {
        // User and password were right each time: it is not for them that the session was denied.
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
    // What the BMC denies now it may know again in a moment.
    if (access.kind === "Session") this.#left.add(access);
  }

  async #sendWith(access: Access, login: Promise<Access>, call: Call, signal: AbortSignal): Promise<Answer> {
    const authenticated = { ...call, headers: { ...call.headers, ...access.headers } };
    if (access.kind === "Session") return this.#send(authenticated, signal);
    if (!this.#basicAccepted) return this.#tryBasic(authenticated, login, access, signal);
    // Each request carries the password: once one device was refused it, the others do not send it either.
    this.#breaker.checkRefused(this.origin, this.#login, this.origin);
    return this.#send(authenticated, signal);
  }

  /** Basic authentication shows only at its first use whether it is accepted: that is its login. */
  #tryBasic(call: Call, login: Promise<Access>, access: BasicAccess, signal: AbortSignal): Promise<Answer> {
    return this.#turn.run(signal, async () => {
      this.#breaker.check(this.origin, this.#login, this.origin);
      for (;;) {
        const answer = await this.#send(call, signal);
        if (answer.status !== 401 || lacksPrivilege(answer)) {
          this.#basicAccepted = true;
          this.#shared.noBasic.forget(this.#account);
          this.#breaker.accepted(this.origin, this.#login);
          return answer;
        }
        this.#interruptions += 1;
        // The next one has its turn only after that is settled.
        await this.#waitForStray(call, login, access, signal);
      }
    });
  }

  /** Waits until basic authentication may be tried again after a 401. @throws BmcError where it may not. */
  async #waitForStray(call: Call, login: Promise<Access>, access: BasicAccess, signal: AbortSignal): Promise<void> {
    const what = `${call.method} ${this.origin}${call.path}`;
    const strayMs = this.#breaker.strayPause(this.origin, this.#login);
    if (strayMs !== undefined) {
      this.#hasStrayed = true;
      return sleep(this.#clock, strayMs, signal);
    }
    if (access.sessionsFull && !this.#basicAccepted) {
      this.#shared.noBasic.note(this.#account);
      this.#drop(login, access);
      throw new BmcError("Busy", `${what}: ${NO_SESSION_FREE}`);
    }
    this.#breaker.refused(this.origin, this.#login);
    this.#refusal = new BmcError("AuthFailed", `${what}: HTTP 401: user or password refused`);
    throw this.#refusal;
  }

  async #send(call: Call, signal: AbortSignal): Promise<Answer> {
    try {
      const isRead = call.method === "GET";
      if (!isRead && !this.#mayOrder()) throw orderNotAllowed(`${call.method} ${this.origin}${call.path}`);
      const answer = isRead ? await this.#readOnce(call, signal) : await this.#connection.send(call, signal);
      if (answer.status === 503) this.#interruptions += 1;
      return answer;
    } catch (error) {
      if (error instanceof BmcError && error.code !== "Aborted") this.#interruptions += 1;
      this.#noteSilence(error);
      throw error;
    }
  }

  #noteSilence(error: unknown): void {
    if (error instanceof BmcError && error.code === "Unreachable") this.#silences.note(this.origin);
  }

  /** A read may be sent again: it changes nothing. */
  async #readOnce(call: Call, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.#connection.send(call, signal);
    } catch (error) {
      if (!brokeOff(error)) throw error;
      this.#interruptions += 1;
      return await this.#connection.send(call, signal);
    }
  }

  /**
   * Logs in on the service's own time, not on that of the call that needed it: a login that was aborted half way would leave
   * a session behind that nobody knows, and BMCs have few.
   */
  #logIn(): Promise<Access> {
    const what = `login at ${this.origin}`;
    const unaborted = new AbortController().signal;
    const access = this.#turn.run(this.#lifetime.signal, () =>
      withDeadline(this.#clock, what, LOGIN_SHARE * this.#callTimeoutMs, unaborted, (signal) => this.#tryLogin(signal)),
    );
    access.catch((error: unknown) => {
      if (error instanceof BmcError && error.code === "AuthFailed") this.#refusal = error;
      // The next call logs in again, unless we were refused.
      if (this.#access === access) this.#access = undefined;
    });
    return access;
  }

  /**
   * Looks whether a plain HTTP address sends everybody to another one, before a password goes out to it in clear text.
   *
   * @throws BmcError Unsupported where it does.
   */
  async #refuseRedirect(signal: AbortSignal): Promise<void> {
    if (!this.origin.startsWith("http:") || this.#shared.plain.isRecent(this.origin)) return;
    const answer = await this.#readOnce({ method: "GET", path: ROOT }, signal);
    const location = answer.status >= 300 && answer.status < 400 ? answer.header("location") : undefined;
    const target = location === undefined ? undefined : URL.parse(location, this.origin)?.origin;
    if (target !== undefined && target !== this.origin) {
      const what = `${this.origin} redirects to ${target.slice(0, 200)}`;
      throw new BmcError("Unsupported", `${what}: give that address; no password has been sent`);
    }
    const isSentAway = (answer.status >= 300 && answer.status < 400) || NOT_BY_PLAIN_HTTP.has(answer.status);
    if (isSentAway && target === undefined) {
      const what = `${this.origin} answers HTTP ${answer.status} to plain HTTP`;
      throw new BmcError("Unsupported", `${what}: give its https address; no password has been sent`);
    }
    if (answer.status === 200) this.#root = answer.body;
    this.#shared.plain.note(this.origin);
  }

  async #tryLogin(signal: AbortSignal): Promise<Access> {
    await this.#shared.pace.begin();
    signal.throwIfAborted();
    this.#breaker.check(this.origin, this.#login, this.origin);
    const startMs = this.#clock.monotonicMs();
    await this.#refuseRedirect(signal);
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
            readRoot: (signal) => this.#readRoot(signal),
            elsewhere: this.#shared.elsewhere,
            hasTime,
          },
          signal,
        );
        const isFull = access.kind === "Basic" && access.sessionsFull;
        // What another device was refused says nothing against what has worked for this one.
        if (isFull && !this.#basicAccepted && this.#shared.noBasic.isRecent(this.#account)) {
          throw new BmcError("Busy", `log-in at ${this.origin}: ${NO_SESSION_FREE}`);
        }
        const nowMs = this.#clock.monotonicMs();
        this.#sessionAgainAtMs = isFull ? nowMs + SESSION_AGAIN_MS : Infinity;
        this.#knownAtMs = nowMs;
        this.#denials = 0;
        if (access.kind === "Basic" && access.unusable !== undefined) this.#left.add(access.unusable);
        this.#logins += 1;
        // Basic authentication shows at its first use whether it is accepted.
        if (access.kind === "Session") this.#breaker.accepted(this.origin, this.#login);
        return access;
      } catch (error) {
        this.#noteSilence(error);
        if (!(error instanceof BmcError) || error.code !== "AuthFailed") throw error;
        const pauseMs = this.#breaker.refusedMaybe(this.origin, this.#login);
        if (pauseMs === undefined) throw error;
        await sleep(this.#clock, pauseMs, signal);
      }
    }
  }
}
