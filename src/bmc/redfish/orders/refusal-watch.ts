import { failure } from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Service } from "../session/service.ts";
import { parseTask, retryAfterMs, taskReference } from "./task.ts";
import type { BmcError } from "../../interface/errors.ts";
import { sleep } from "../../../runtime/clock.ts";
import type { Clock } from "../../../runtime/clock.ts";

/**
 * How long an order that runs as a task is watched for an early refusal. After that the order counts as accepted: the
 * power state shows its effect, usually before the task ends.
 */
const TASK_WATCH_MS = 600;

/** Detects whether a service refuses a change. */
export class RefusalWatch {
  readonly #service: Service;
  readonly #clock: Clock;
  readonly #watchMs: number;

  constructor(service: Service, clock: Clock, callTimeoutMs: number) {
    this.#service = service;
    this.#clock = clock;
    this.#watchMs = Math.min(TASK_WATCH_MS, callTimeoutMs / 4);
  }

  /**
   * @param what names the change in the error.
   * @returns why the service refuses the change, in its answer or, a short time later, in a task. Undefined if it
   * accepts it.
   */
  async refusalOf(what: string, answer: RedfishAnswer, signal: AbortSignal): Promise<BmcError | undefined> {
    if (answer.status < 200 || answer.status >= 300) return failure(what, answer);
    const reference = taskReference(answer);
    if (reference === undefined) return undefined;
    const monitor = pathOnOrigin(this.#service.origin, reference, "the location of the task");
    const endMs = this.#clock.monotonicMs() + this.#watchMs;
    let waitMs = retryAfterMs(answer);
    while (this.#clock.monotonicMs() + waitMs <= endMs) {
      await sleep(this.#clock, waitMs, signal);
      const progress = parseTask(what, await this.#service.monitor(monitor, signal));
      if (progress.state === "Ended") return undefined;
      if (progress.state === "Failed") return progress.error;
      waitMs = progress.retryAfterMs;
    }
    return undefined;
  }
}
