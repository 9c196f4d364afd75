import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface ControllerDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface ControllerOptions {
  name: string;
  concurrency: number;
  reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void>;
  minBackoffMs?: number;
  maxBackoffMs?: number;
}

export class Controller {
  readonly #options: ControllerOptions;
  constructor(_deps: ControllerDeps, options: ControllerOptions) {
    this.#options = options;
  }
  enqueue(key: string, delayMs = 0): void {
    throw new Error(`not built yet ${this.#options.name} ${key} ${delayMs}`);
  }
  async run(signal: AbortSignal): Promise<void> {
    throw new Error(`not built yet ${this.#options.name} ${signal.aborted}`);
  }
}
