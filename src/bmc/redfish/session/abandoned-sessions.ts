import { failure } from "../http/answer.ts";
import type { Connection } from "../http/connection.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../telemetry/logger.ts";

/**
 * A session that may be open on the BMC, with the headers that end it. They contain its own token, so that no other
 * session is ended by mistake.
 */
export interface OpenSession {
  /** Undefined if the service does not report the path of the session: it can be used, but not ended. */
  path: string | undefined;
  headers: Readonly<Record<string, string>>;
}

/**
 * How many times the end of a session is requested: a BMC that denies valid sessions at random may deny this request as
 * well.
 */
const TRIES_MAX = 3;

/**
 * Sessions that are no longer used. A BMC has few, so each is ended, even one that the BMC has denied: it may still be
 * open.
 */
export class AbandonedSessions {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #timeoutMs: number;
  #left: OpenSession[] = [];
  #ending: Promise<unknown> = Promise.resolve();

  constructor(options: { connection: Connection; clock: Clock; logger: Logger; timeoutMs: number }) {
    this.#connection = options.connection;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#timeoutMs = options.timeoutMs;
  }

  add(session: OpenSession): void {
    this.#left.push(session);
  }

  /**
   * Starts to end the sessions in the background.
   *
   * @param used The path of the session in use, which is not ended. An abandoned session may have the same path if the
   * BMC reuses ids.
   */
  end(used: string | undefined): void {
    const left = this.#left.filter(({ path }) => path === undefined || path !== used);
    this.#left = [];
    if (left.length === 0) return;
    this.#ending = Promise.all([this.#ending, ...left.map((session) => this.#end(session))]);
  }

  /** Waits until every session has been ended or has reached its deadline. Never throws. */
  async ended(): Promise<void> {
    await this.#ending;
  }

  async #end(session: OpenSession): Promise<void> {
    const { origin } = this.#connection;
    try {
      const never = new AbortController().signal;
      await withDeadline(this.#clock, "end of a session", this.#timeoutMs, never, (signal) =>
        endSession(this.#connection, session, signal),
      );
    } catch (error) {
      this.#logger.warn({ origin, err: error }, "redfish session not ended");
    }
  }
}

/**
 * Ends a session. A session that the BMC does not know, or denies each time, has ended already. @throws BmcError if it
 * may still be open.
 */
export async function endSession(connection: Connection, session: OpenSession, signal: AbortSignal): Promise<void> {
  const { path, headers } = session;
  if (path === undefined) throw new BmcError("BadResponse", "the BMC has not reported its location");
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const answer = await connection.send({ method: "DELETE", path, headers }, signal);
    if (answer.status < 400 || answer.status === 404) return;
    if (answer.status !== 401) throw failure("the end of the session", answer);
  }
}
