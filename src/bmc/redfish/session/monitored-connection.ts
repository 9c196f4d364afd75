import { brokeOff } from "../http/connection.ts";
import type { Call, Connection } from "../http/connection.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { PossibleRestarts } from "../../gate/memory/possible-restarts.ts";
import { BmcError, orderNotAllowed } from "../../interface/errors.ts";

/** Sends requests, and records events that may mean that the BMC restarted. */
export class MonitoredConnection {
  readonly origin: string;
  readonly #connection: Connection;
  readonly #possibleRestarts: PossibleRestarts;
  readonly #isOrderAllowed: () => boolean;
  #interruptions = 0;

  constructor(options: {
    connection: Connection;
    possibleRestarts: PossibleRestarts;
    isOrderAllowed: (() => boolean) | undefined;
  }) {
    this.origin = options.connection.origin;
    this.#connection = options.connection;
    this.#possibleRestarts = options.possibleRestarts;
    this.#isOrderAllowed = options.isOrderAllowed ?? (() => true);
  }

  /**
   * How many times a request failed, a session was lost, or the BMC was not ready. Each time the BMC may have
   * restarted.
   */
  get interruptions(): number {
    return this.#interruptions;
  }

  /** Whether a short time ago the BMC was unreachable, or denied a session that it had created. */
  get mayHaveRestarted(): boolean {
    return this.#possibleRestarts.has(this.origin);
  }

  recordInterruption(): void {
    this.#interruptions += 1;
  }

  /** Records that the BMC may have restarted, also for the other drivers of this process. */
  recordPossibleRestart(): void {
    this.#interruptions += 1;
    this.#possibleRestarts.add(this.origin);
  }

  /** Records a failure if it may come from a restart. */
  recordFailure(error: unknown): void {
    if (error instanceof BmcError && error.code === "Unreachable") this.#possibleRestarts.add(this.origin);
  }

  /**
   * Sends a request. A read whose connection breaks is sent a second time.
   *
   * @throws BmcError Aborted for a change that this process may no longer send; otherwise as `Connection.send`.
   */
  async send(call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    try {
      const isRead = call.method === "GET";
      if (!isRead && !this.#isOrderAllowed()) throw orderNotAllowed(`${call.method} ${this.origin}${call.path}`);
      const answer = isRead ? await this.sendRead(call, signal) : await this.#connection.send(call, signal);
      if (answer.status === 503) this.#interruptions += 1;
      return answer;
    } catch (error) {
      if (error instanceof BmcError && error.code !== "Aborted") this.#interruptions += 1;
      this.recordFailure(error);
      throw error;
    }
  }

  /** Sends a read, and sends it again if the connection breaks. Only a broken connection is recorded. */
  async sendRead(call: Call, signal: AbortSignal): Promise<RedfishAnswer> {
    try {
      return await this.#connection.send(call, signal);
    } catch (error) {
      if (!brokeOff(error)) throw error;
      this.#interruptions += 1;
      return await this.#connection.send(call, signal);
    }
  }
}
