import { failure } from "./answer.ts";
import type { Connection } from "./connection.ts";
import { BmcError } from "../errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** A session that may be open on the BMC, and what to end it with: its own token, so that no other one can ever be meant. */
export interface OpenSession {
  /** Undefined where the service does not say where the session is: it serves, and cannot be ended. */
  path: string | undefined;
  headers: Readonly<Record<string, string>>;
}

/** A BMC that denies valid sessions at random denies their end as well. */
const TRIES_MAX = 3;

/** Sessions that nobody uses any more. A BMC has few, so each is ended, also one that the BMC has denied: it may be open still. */
export class LeftSessions {
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
   * Begins to end them, and keeps nobody waiting.
   *
   * @param used the path of the session in use, which may have the id of one of them, if the BMC uses ids again.
   */
  end(used: string | undefined): void {
    const left = this.#left.filter(({ path }) => path === undefined || path !== used);
    this.#left = [];
    if (left.length === 0) return;
    this.#ending = Promise.all([this.#ending, ...left.map((session) => this.#end(session))]);
  }

  /** Waits until all have been ended, or have had their time. Never throws. */
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

/** Ends a session. One that the BMC does not know any more has ended. @throws BmcError where it may be open still. */
export async function endSession(connection: Connection, session: OpenSession, signal: AbortSignal): Promise<void> {
  const { path, headers } = session;
  if (path === undefined) throw new BmcError("BadResponse", "the BMC has not said where it is");
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const answer = await connection.send({ method: "DELETE", path, headers }, signal);
    if (answer.status < 400 || answer.status === 404) return;
    if (answer.status !== 401) throw failure("the end of the session", answer);
  }
}
