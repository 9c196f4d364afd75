import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import { backoffMs } from "../../runtime/random.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { isKubeError } from "../errors.ts";
import { StartRate } from "./start-rate.ts";
import { WorkQueue } from "./work-queue.ts";

const MIN_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 60_000;

/**
 * Bounds how often a controller starts anything at all, so that a fault that makes every key due again and again cannot
 * turn into a busy loop against the API server. High enough that 5,000 nodes are looked at within seconds of a start.
 */
const STARTS_PER_SECOND_MAX = 1_000;

export interface ControllerDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface ControllerOptions {
  /** Stands in every log line. */
  name: string;
  /** Keys worked on at the same time. */
  concurrency: number;
  /**
   * Brings what `key` names from what it is to what it should be. It gets only the key: it reads the present
   * state, so it does not matter how many changes led there. A throw means "again later" with exponential back-off;
   * `requeueAfterMs` means "again then" without one. It has to end soon after `signal` aborts.
   */
  reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void>;
  /** Wait after the first failure of a key; it doubles with every further one. The default is 200. */
  minBackoffMs?: number;
  /** Longest wait between failures. The default is 60,000. */
  maxBackoffMs?: number;
  /** Starts of all keys together. The default is 1,000. */
  startsPerSecondMax?: number;
}

/**
 * Runs a reconciler over keys: level-triggered, every key once in the queue, one run of a key at a time.
 *
 * `enqueue` may be called at any time, before `run` too. A key that is enqueued during its own run runs again.
 */
export class Controller {
  readonly #deps: ControllerDeps;
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  readonly #rate: StartRate;
  /** Failures in a row; a key that succeeded has no entry. */
  readonly #failures = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();
  #slotFreed: (() => void) | undefined;

  constructor(deps: ControllerDeps, options: ControllerOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#queue = new WorkQueue(deps.clock);
    const startsPerSecond = options.startsPerSecondMax ?? STARTS_PER_SECOND_MAX;
    this.#rate = new StartRate(deps.clock, startsPerSecond, startsPerSecond);
  }

  /** Makes `key` due in `delayMs`. A key that is due earlier stays so. */
  enqueue(key: string, delayMs = 0): void {
    this.#queue.add(key, delayMs);
  }

  /** Drops a key that was enqueued and has not begun, so that it costs no start. */
  forget(key: string): void {
    this.#queue.remove(key);
    this.#failures.delete(key);
  }

  /** Works until `signal` aborts; resolves when every run that had begun has ended. May be called once. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.#slot();
        const waitMs = this.#rate.takeMs();
        if (waitMs > 0) await sleep(this.#deps.clock, waitMs, signal);
        this.#start(await this.#queue.take(signal), signal);
      }
    } catch (error) {
      // The waits above throw on abort alone, and that is the clean end.
      if (!signal.aborted) throw error;
    } finally {
      this.#queue.close();
      await Promise.all(this.#running);
    }
  }

  /** Resolves when one more run may go on together with the others. */
  async #slot(): Promise<void> {
    while (this.#running.size >= this.#options.concurrency) {
      await new Promise<void>((resolve) => {
        this.#slotFreed = resolve;
      });
    }
  }

  #start(key: string, signal: AbortSignal): void {
    const run = this.#runOnce(key, signal).finally(() => {
      this.#running.delete(run);
      this.#queue.done(key);
      this.#slotFreed?.();
    });
    this.#running.add(run);
  }

  /** Never rejects. */
  async #runOnce(key: string, signal: AbortSignal): Promise<void> {
    try {
      const result = await this.#options.reconcile(key, signal);
      this.#failures.delete(key);
      if (result?.requeueAfterMs !== undefined) this.enqueue(key, result.requeueAfterMs);
    } catch (error) {
      if (signal.aborted) return;
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      const { minBackoffMs = MIN_BACKOFF_MS, maxBackoffMs = MAX_BACKOFF_MS } = this.#options;
      const askedMs = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
      const retryInMs = Math.max(backoffMs(this.#deps.random, minBackoffMs, maxBackoffMs, failures), askedMs);
      this.#deps.logger.warn(
        { controller: this.#options.name, key, failures: failures + 1, retryInMs: Math.round(retryInMs), err: error },
        "reconcile failed, will try again",
      );
      this.enqueue(key, retryInMs);
    }
  }
}
