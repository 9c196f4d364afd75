import { failure } from "../http/answer.ts";
import type { Connection } from "../http/connection.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import type { Logger } from "../../../telemetry/logger.ts";

/**
 * A session that may be open on the BMC, and what ends it: its own token, so that no other session can be ended by
 * mistake.
 */
export interface OpenSession {
  /** Undefined if the service does not report the path of the session: it can be used, but not ended. */
  path: string | undefined;
  headers: Readonly<Record<string, string>>;
}

/** How often the end of a session is tried: a BMC that denies valid sessions at random denies their end as well. */
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
   * Starts to end them in the background.
   *
   * @param used the path of the session in use. It may have the id of an abandoned one, if the BMC reuses ids.
   */
  end(used: string | undefined): void {
    const left = this.#left.filter(({ path }) => path === undefined || path !== used);
    this.#left = [];
    if (left.length === 0) return;
    this.#ending = Promise.all([this.#ending, ...left.map((session) => this.#end(session))]);
  }

  /** Waits until all have been ended, or have reached their deadline. Never throws. */
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

/** Ends a session. One that the BMC does not know any more has ended. @throws BmcError if it may still be open. */
export async function endSession(connection: Connection, session: OpenSession, signal: AbortSignal): Promise<void> {
  const { path, headers } = session;
  if (path === undefined) throw new BmcError("BadResponse", "the BMC has not reported its location");
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const answer = await connection.send({ method: "DELETE", path, headers }, signal);
    if (answer.status < 400 || answer.status === 404) return;
    if (answer.status !== 401) throw failure("the end of the session", answer);
  }
}
