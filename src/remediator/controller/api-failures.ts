import type { KubeError } from "../../kube/errors.ts";
import type { Random } from "../../runtime/random.ts";
import { backoffMs } from "../../runtime/random.ts";
import {
  API_REPEAT_MS,
  API_REPORT_AFTER_MS,
  API_RETRY_MAX_MS,
  API_RETRY_MIN_MS,
  UNTAINT_RETRY_MAX_MS,
} from "../machine/model/timings.ts";
import type { ApiCall, ApiFailure } from "../machine/model/api-failure.ts";

/** A call that is not made again for so long after it may be is not needed any more. */
const FORGOTTEN_AFTER_MS = 10_000;

/** After so many tries it is no matter of seconds any more. */
const URGENT_TRIES = 60;

/** What takes our out-of-service taint off: it has to be off soon, whatever else fails. */
const TAKES_TAINT_OFF: ReadonlySet<ApiCall> = new Set<ApiCall>(["untaint", "swapMarks", "clearMarks"]);

export function takesTaintOff(call: ApiCall): boolean {
  return TAKES_TAINT_OFF.has(call);
}

/**
 * The kinds of calls to the API that fail for one remediation, each with a back-off of its own: a list that is refused must not
 * hold back the patch that takes a taint off.
 */
export class ApiFailures {
  readonly #troubles = new Map<ApiCall, ApiFailure>();
  /** When people were last warned of each. */
  readonly #said = new Map<ApiCall, number>();

  /** @param startedMs when the call began. */
  failed(call: ApiCall, error: KubeError, random: Random, times: { startedMs: number; nowMs: number }): ApiFailure {
    const known = this.#troubles.get(call);
    const failures = (known?.failures ?? 0) + 1;
    const urgent = takesTaintOff(call) && failures < URGENT_TRIES;
    const longestMs = urgent ? UNTAINT_RETRY_MAX_MS : API_RETRY_MAX_MS;
    const ownMs = backoffMs(random, API_RETRY_MIN_MS, longestMs, failures - 1);
    const trouble = {
      call,
      message: error.nextStep === undefined ? error.message : `${error.message}: ${error.nextStep}`,
      refused: !error.retryable,
      failures,
      // A taint that may stand on a host that runs does not wait until the server would like to be asked again.
      retryAtMs: times.nowMs + (urgent ? ownMs : Math.max(ownMs, error.retryAfterMs ?? 0)),
      sinceMs: known?.sinceMs ?? times.startedMs,
    };
    this.#troubles.set(call, trouble);
    return trouble;
  }

  /** Whether people are to be warned of it: after a while, and again from time to time, since events are not kept for long. */
  isToBeSaid({ call, sinceMs }: ApiFailure, nowMs: number): boolean {
    const saidMs = this.#said.get(call) ?? -Infinity;
    if (nowMs - sinceMs < API_REPORT_AFTER_MS || nowMs - saidMs < API_REPEAT_MS) return false;
    this.#said.set(call, nowMs);
    return true;
  }

  succeeded(call: ApiCall): void {
    this.#troubles.delete(call);
    this.#said.delete(call);
  }

  /** The remediation has moved on: other calls are due. */
  clear(): void {
    this.#troubles.clear();
    this.#said.clear();
  }

  /** Failures in a row of one kind of call. */
  failuresOf(call: ApiCall): number {
    return this.#troubles.get(call)?.failures ?? 0;
  }

  /** Milliseconds until all of `calls` may be made; 0 where they may. */
  waitMs(calls: readonly ApiCall[], nowMs: number): number {
    const waits = calls.map((call) => (this.#troubles.get(call)?.retryAtMs ?? -Infinity) - nowMs);
    return Math.max(0, ...waits);
  }

  /** What has failed for longest, of what is still being tried. */
  oldest(nowMs: number): ApiFailure | undefined {
    for (const [call, { retryAtMs }] of this.#troubles) {
      if (nowMs > retryAtMs + FORGOTTEN_AFTER_MS) this.#troubles.delete(call);
    }
    return [...this.#troubles.values()].toSorted((a, b) => a.sinceMs - b.sinceMs)[0];
  }
}
