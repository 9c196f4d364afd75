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
 * Bounds how many runs a controller starts, so that a fault that enqueues every key repeatedly cannot become a busy
 * loop against the API server. High enough to reconcile 5,000 nodes within seconds of a start.
 */
const STARTS_PER_SECOND_MAX = 1_000;

export interface ControllerDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface ControllerOptions {
  /** Identifies the controller in log lines. */
  name: string;
  /** The number of keys that are reconciled at the same time. */
  concurrency: number;
  /**
   * Brings the object of `key` to its desired state. It gets only the key and reads the current state, so it does not
   * matter how many changes led to that state. If it throws, it runs again with exponential backoff. If it returns
   * `requeueAfterMs`, it runs again after that time. It must end soon after `signal` aborts.
   */
  reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void>;
  /** The wait after the first failure of a key. It doubles with every further failure. The default is 200. */
  minBackoffMs?: number;
  /** The longest wait between failures. The default is 60,000. */
  maxBackoffMs?: number;
  /** The largest number of runs that start in one second, for all keys together. The default is 1,000. */
  startsPerSecondMax?: number;
}

/**
 * Runs a level-triggered reconciler for keys. Each key is in the queue at most once and has one run at a time.
 *
 * `enqueue` may be called at any time, also before `run`. A key that is enqueued during its own run runs again.
 */
export class Controller {
  readonly #deps: ControllerDeps;
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  readonly #rate: StartRate;
  /** Consecutive failures by key. A key whose last run succeeded has no entry. */
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

  /** Makes `key` due in `delayMs`, unless it is already due earlier. */
  enqueue(key: string, delayMs = 0): void {
    this.#queue.add(key, delayMs);
  }

  /** Drops a key whose run has not started, so that it does not count against `startsPerSecondMax`. */
  forget(key: string): void {
    this.#queue.remove(key);
    this.#failures.delete(key);
  }

  /** Runs until `signal` aborts. Resolves when every run that had started has ended. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.#slot();
        const waitMs = this.#rate.takeMs();
        if (waitMs > 0) await sleep(this.#deps.clock, waitMs, signal);
        this.#start(await this.#queue.take(signal), signal);
      }
    } catch (error) {
      // The waits above throw only on abort, which is the normal end.
      if (!signal.aborted) throw error;
    } finally {
      this.#queue.close();
      await Promise.all(this.#running);
    }
  }

  /** Resolves when one more run may start. */
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
