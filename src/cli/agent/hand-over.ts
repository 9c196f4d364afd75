import type { Logger } from "../../telemetry/logger.ts";

/**
 * How long an agent that has given up its lease waits before it exits. The other agents check the lease every few
 * seconds, so one of them acquires it before this agent is started again.
 */
export const HAND_OVER_MS = 20_000;

/** Lets the leader give up its lease for a reason of its own. */
export class HandOver {
  readonly #logger: Logger;
  readonly #begun = new AbortController();
  why: string | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  begin(why: string): void {
    if (this.why !== undefined) return;
    this.why = why;
    this.#logger.warn({ why }, "handing the lease over to another agent");
    this.#begun.abort(new Error(`the lease is handed over: ${why}`));
  }

  signalBeside(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#begun.signal]);
  }
}
