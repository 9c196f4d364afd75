import { AbandonedSessions, endSession } from "./abandoned-sessions.ts";
import { AuthenticatedRequests } from "./authenticated-requests.ts";
import type { RequestPrecondition } from "./authenticated-requests.ts";
import { MonitoredConnection } from "./monitored-connection.ts";
import { REDIRECTS, ServiceRoot } from "./service-root.ts";
import { failure } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { AnswerStart, Call, Connection } from "../http/connection.ts";
import { stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { SentSecrets } from "../http/sent-secrets.ts";
import type { BmcGate } from "../../gate/bmc-gate.ts";
import type { BmcMemory } from "../../gate/memory/bmc-memory.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import type { DeviceDeps } from "../../interface/driver.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../telemetry/logger.ts";

/** The deadline for the end of the session: a login in progress ends first, and some BMCs need 6 s for an answer. */
const CLOSE_TIMEOUT_MS = 15_000;

/** A resource that was read just now. */
export interface Resource {
  /** The path from which it was read, after redirects within the service. */
  path: string;
  body: JsonObject;
  etag: string | undefined;
  /** The time of the answer by the clock of the BMC, from its header. */
  date: string | undefined;
  /** Whether a cache answered instead of the BMC, although the request forbids it. */
  isStale: boolean;
}

/** The resources of a Redfish service. The first request logs in, and `close` ends the session. */
export class Service {
  readonly username: string;
  /** Identifies the account and its BMC. */
  readonly account: string;
  readonly #connection: Connection;
  readonly #monitored: MonitoredConnection;
  readonly #requests: AuthenticatedRequests;
  readonly #root: ServiceRoot;
  readonly #abandoned: AbandonedSessions;
  readonly #memory: BmcMemory;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #closeTimeoutMs: number;
  readonly #releaseMutex: () => void;
  #side: Connection | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: {
    connection: Connection;
    login: BmcCredentials;
    callTimeoutMs: number;
    gate: BmcGate;
    deps: DeviceDeps;
  }) {
    const { connection, login, callTimeoutMs, gate } = options;
    const { clock, logger, isOrderAllowed, abandonLogin } = options.deps;
    const { origin } = connection;
    const { memory } = gate;
    const account = `${origin} ${login.username}`;
    this.username = login.username;
    this.account = account;
    this.#connection = connection;
    this.#memory = memory;
    this.#clock = clock;
    this.#logger = logger;
    this.#closeTimeoutMs = Math.min(CLOSE_TIMEOUT_MS, callTimeoutMs);
    const monitored = new MonitoredConnection({
      connection,
      possibleRestarts: memory.possibleRestarts,
      isOrderAllowed,
    });
    const root = new ServiceRoot({
      origin,
      memory,
      send: (call, signal) => monitored.sendRead(call, signal),
      onMissing: () => monitored.recordPossibleRestart(),
    });
    const abandoned = new AbandonedSessions({ connection, clock, logger, timeoutMs: this.#closeTimeoutMs });
    const { mutex, release } = gate.mutexes.acquire(origin);
    this.#monitored = monitored;
    this.#root = root;
    this.#abandoned = abandoned;
    this.#releaseMutex = release;
    this.#requests = new AuthenticatedRequests({
      connection,
      monitored,
      root,
      abandoned,
      login,
      account,
      mutex,
      gate,
      clock,
      callTimeoutMs,
      abandonLogin,
    });
  }

  get origin(): string {
    return this.#connection.origin;
  }

  /** The end of validity of the last certificate that the service sent. */
  get certificateUntilMs(): number | undefined {
    return this.#connection.certificateUntilMs;
  }

  /** Secrets that were sent to the BMC. They are replaced in texts of the BMC before these are shown. */
  get sentSecrets(): SentSecrets {
    return this.#connection.sentSecrets;
  }

  /** How many logins have succeeded. After each of them the name in the origin may lead to another BMC. */
  get logins(): number {
    return this.#requests.logins;
  }

  /**
   * How many times a request failed, a session was lost, or the BMC was not ready. Each time the BMC may have
   * restarted.
   */
  get interruptions(): number {
    return this.#monitored.interruptions;
  }

  /** Whether a short time ago the BMC was unreachable, or denied a session that it had created. */
  get mayHaveRestarted(): boolean {
    return this.#monitored.mayHaveRestarted;
  }

  /** Reads the service root. It is read only once. */
  root(signal: AbortSignal): Promise<JsonObject> {
    return this.#root.read(this.#requests.until(signal));
  }

  /** Reads a resource. @throws BmcError unless the answer is a JSON object. */
  async get(path: string, signal: AbortSignal): Promise<Resource> {
    const resource = await this.find(path, signal);
    if (resource === undefined)
      throw new BmcError("BadResponse", `GET ${this.origin}${path}: there is no such resource`);
    return resource;
  }

  /**
   * Reads a resource, if it exists. A connection that was closed is opened again once, and one redirect within the
   * service is followed (iLO adds a slash to its paths that way).
   *
   * @throws BmcError unless the answer is a JSON object or "not found".
   */
  async find(path: string, signal: AbortSignal): Promise<Resource | undefined> {
    let at = path;
    let answer = await this.#requests.send({ method: "GET", path: at }, signal);
    if (REDIRECTS.has(answer.status)) {
      at = pathOnOrigin(this.origin, answer.header("location"), `the redirect from ${path}`);
      answer = await this.#requests.send({ method: "GET", path: at }, signal);
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
   * Reads a resource that is useful but not required: once, with the present access. A 401 does not end the session.
   *
   * @returns undefined unless the answer is a resource. @throws BmcError if there is no answer.
   */
  async getOptional(path: string, callerSignal: AbortSignal): Promise<JsonObject | undefined> {
    const signal = this.#requests.until(callerSignal);
    const { headers } = await this.#requests.currentAccess();
    const answer = await this.#monitored.send({ method: "GET", path, headers }, signal);
    return answer.status === 200 ? answer.body : undefined;
  }

  /**
   * Reads the beginning of a resource over a separate connection, with the present access, once. No other request waits
   * for it, and its failure does not count as an interruption.
   *
   * @throws BmcError if there is no answer.
   */
  async readBesides(path: string, bytesMax: number, callerSignal: AbortSignal): Promise<AnswerStart> {
    const signal = this.#requests.until(callerSignal);
    const { headers } = await this.#requests.currentAccess();
    this.#side ??= this.#connection.sibling();
    return this.#side.readStart(path, headers, bytesMax, signal);
  }

  /** Closes the separate connection of `readBesides`. Never throws. */
  async endBesides(): Promise<void> {
    const side = this.#side;
    this.#side = undefined;
    await side?.destroy().catch(() => undefined);
  }

  /** Reads a task monitor. Every status is returned. */
  monitor(path: string, signal: AbortSignal): Promise<RedfishAnswer> {
    return this.#requests.send({ method: "GET", path }, signal);
  }

  /**
   * Sends a change to the host, at most once, and returns any answer that shows that the BMC received it.
   *
   * @param check Called before each transmission, in the login that is used for it. If it throws, nothing is sent.
   * @throws BmcError if there is no such answer: it is then unknown whether the change took effect.
   */
  change(
    call: Call & { method: "POST" | "PATCH" },
    check: RequestPrecondition,
    signal: AbortSignal,
  ): Promise<RedfishAnswer> {
    return this.#requests.send(call, signal, check);
  }

  /** Ends the session, whatever has happened before, and closes the connection. Never throws. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const left = this.#requests.end();
    void this.endBesides();
    const unaborted = new AbortController().signal;
    try {
      await withDeadline(this.#clock, "close", this.#closeTimeoutMs, unaborted, async (signal) => {
        const access = await left;
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
}
