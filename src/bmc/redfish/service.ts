import { failure } from "./answer.ts";
import type { Answer } from "./answer.ts";
import { brokeOff } from "./connection.ts";
import type { Call, Connection } from "./connection.ts";
import { EMPTY, stringAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { logIn } from "./login.ts";
import type { Access, Credentials } from "./login.ts";
import { pathOnOrigin } from "./reference.ts";
import { BmcError } from "../errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Longest that ending the session may take. */
const CLOSE_TIMEOUT_MS = 5_000;
const ROOT = "/redfish/v1/";

/** A resource that was read just now. */
export interface Resource {
  /** Where it was found, after a redirect within the service. */
  path: string;
  body: JsonObject;
  etag: string | undefined;
}

/** An authenticated Redfish service: logs in on first use, and ends its session when closed. */
export class Service {
  readonly #connection: Connection;
  readonly #credentials: Credentials;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lifetime = new AbortController();
  #root: JsonObject | undefined;
  #access: Promise<Access> | undefined;
  /** The refusal of our credentials: remembered, because more tries lock accounts. */
  #refusal: BmcError | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: {
    connection: Connection;
    credentials: Credentials;
    callTimeoutMs: number;
    deps: { clock: Clock; logger: Logger };
  }) {
    this.#connection = options.connection;
    this.#credentials = options.credentials;
    this.#callTimeoutMs = options.callTimeoutMs;
    this.#clock = options.deps.clock;
    this.#logger = options.deps.logger;
  }

  get origin(): string {
    return this.#connection.origin;
  }

  /** The service root, read once: it names collections and changes with the firmware only. */
  root(signal: AbortSignal): Promise<JsonObject> {
    return this.#readRoot(AbortSignal.any([signal, this.#lifetime.signal]));
  }

  async #readRoot(signal: AbortSignal): Promise<JsonObject> {
    if (this.#root !== undefined) return this.#root;
    const answer = await this.#readOnce({ method: "GET", path: ROOT }, signal);
    // DSP0266 wants the root open to all. Where it is not, the well-known places and basic authentication must do.
    if (answer.status === 401) return EMPTY;
    if (answer.status === 404)
      throw new BmcError("Unsupported", `${this.origin} serves no Redfish (HTTP 404 at ${ROOT})`);
    if (answer.status !== 200) throw failure(`GET ${this.origin}${ROOT}`, answer);
    this.#root = answer.body;
    return answer.body;
  }

  /** Reads a resource freshly. @throws BmcError for everything but a JSON object. */
  async get(path: string, signal: AbortSignal): Promise<Resource> {
    const resource = await this.find(path, signal);
    if (resource === undefined)
      throw new BmcError("BadResponse", `GET ${this.origin}${path}: there is no such resource`);
    return resource;
  }

  /**
   * Reads a resource freshly, if it exists. A connection that broke off is opened anew once, and one redirect within the
   * service is followed (iLO adds a slash to its paths that way).
   *
   * @throws BmcError for everything but a JSON object and "not found".
   */
  async find(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    let at = path;
    let answer = await this.#authenticated({ method: "GET", path: at }, signal);
    if (answer.status === 301 || answer.status === 307 || answer.status === 308) {
      at = pathOnOrigin(this.origin, answer.header("location"), `the redirect from ${path}`);
      answer = await this.#authenticated({ method: "GET", path: at }, signal);
    }
    if (answer.status === 404 || answer.status === 410) return undefined;
    if (answer.status !== 200) throw failure(`GET ${this.origin}${at}`, answer);
    return { path: at, body: answer.body, etag: answer.header("etag") ?? stringAt(answer.body, "@odata.etag") };
  }

  /** Reads a task monitor, whose every status means something. */
  monitor(path: string, signal: AbortSignal): Promise<Answer> {
    return this.#authenticated({ method: "GET", path }, signal);
  }

  /**
   * Sends something that changes the host, at most once, and gives any answer that shows that it was heard.
   *
   * @throws BmcError where there is no such answer: whether it took effect is then unknown.
   */
  change(call: Call & { method: "POST" | "PATCH" }, signal: AbortSignal): Promise<Answer> {
    return this.#authenticated(call, signal);
  }

  /** Ends the session, whatever has happened before, and closes the connection. Never throws. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#lifetime.abort(new BmcError("Aborted", `${this.origin}: closed`));
    const login = this.#access;
    const timeoutMs = Math.min(CLOSE_TIMEOUT_MS, this.#callTimeoutMs);
    try {
      await withDeadline(this.#clock, "close", timeoutMs, new AbortController().signal, async (signal) => {
        // A login that failed has reported itself to its caller, and left no session.
        const access = await login?.catch(() => undefined);
        if (access?.kind !== "Session") return;
        const answer = await this.#connection.send(
          { method: "DELETE", path: access.path, headers: access.headers },
          signal,
        );
        if (answer.status >= 400 && answer.status !== 401 && answer.status !== 404) {
          throw failure("the end of the session", answer);
        }
      });
    } catch (error) {
      this.#logger.warn({ origin: this.origin, err: error }, "redfish session not ended");
    } finally {
      await this.#connection.destroy().catch(() => undefined);
    }
  }

  /** Sends with our access. A 401 says that nothing was done, so a call is sent again after a login that replaces an expired session. */
  async #authenticated(call: Call, callerSignal: AbortSignal): Promise<Answer> {
    const signal = AbortSignal.any([callerSignal, this.#lifetime.signal]);
    for (let logins = 1; ; logins += 1) {
      signal.throwIfAborted();
      if (this.#refusal !== undefined) throw this.#refusal;
      const login = (this.#access ??= this.#logIn());
      const access = await login;
      const authenticated = { ...call, headers: { ...call.headers, ...access.headers } };
      const answer =
        call.method === "GET"
          ? await this.#readOnce(authenticated, signal)
          : await this.#connection.send(authenticated, signal);
      if (answer.status !== 401) return answer;
      if (access.kind === "Session" && logins === 1) {
        if (this.#access === login) this.#access = undefined;
        continue;
      }
      const what = `${call.method} ${this.origin}${call.path}`;
      if (access.kind === "Basic" && access.sessionsFull) {
        throw new BmcError("Busy", `${what}: no session is free, and basic authentication is refused`);
      }
      this.#refusal = new BmcError("AuthFailed", `${what}: HTTP 401: user or password refused`);
      throw this.#refusal;
    }
  }

  /** A read may be sent again: it changes nothing. */
  async #readOnce(call: Call, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.#connection.send(call, signal);
    } catch (error) {
      if (!brokeOff(error)) throw error;
      return await this.#connection.send(call, signal);
    }
  }

  /**
   * Logs in on the service's own time, not on that of the call that needed it: a login that was aborted half way would leave
   * a session behind that nobody knows, and BMCs have few.
   */
  #logIn(): Promise<Access> {
    const login = withDeadline(
      this.#clock,
      `login at ${this.origin}`,
      this.#callTimeoutMs,
      new AbortController().signal,
      async (signal) => logIn(this.#connection, await this.#readRoot(signal), this.#credentials, signal),
    );
    login.catch((error: unknown) => {
      if (error instanceof BmcError && error.code === "AuthFailed") this.#refusal = error;
      // The next call logs in anew, unless we were refused.
      if (this.#access === login) this.#access = undefined;
    });
    return login;
  }
}
