import type { KubeError } from "../../../kube/errors.ts";
import type { Random } from "../../../runtime/random.ts";
import { backoffMs } from "../../../runtime/random.ts";
import { SparseMap } from "../../../runtime/sparse-map.ts";
import {
  API_REPEAT_MS,
  API_REPORT_AFTER_MS,
  API_RETRY_MAX_MS,
  API_RETRY_MIN_MS,
  UNTAINT_RETRY_MAX_MS,
} from "../../machine/model/decision/timings.ts";
import type { ApiCall, ApiFailure } from "../../machine/model/facts/api-failure.ts";

/** A failed call that is not repeated within this time after its backoff is no longer needed. */
const FORGOTTEN_AFTER_MS = 10_000;
/** The same for the taint: before each try the lease of the node must be silent, which takes up to 74 s. */
const TAINT_FORGOTTEN_AFTER_MS = 80_000;

/**
 * After so many failures, a call that removes our taint has the ordinary backoff: the cause will not end within
 * seconds.
 */
const URGENT_TRIES = 60;

/** The calls that remove our out-of-service taint. They are urgent, whatever else fails. */
const TAKES_TAINT_OFF: ReadonlySet<ApiCall> = new Set<ApiCall>(["untaint", "swapMarks", "clearMarks"]);

export function takesTaintOff(call: ApiCall): boolean {
  return TAKES_TAINT_OFF.has(call);
}

/**
 * The kinds of calls to the API that fail for one remediation, each with a back-off of its own: a list that is refused
 * must not delay the patch that removes a taint.
 */
export class ApiFailures {
  readonly #failures = new SparseMap<ApiCall, ApiFailure>();
  /** When the operator was last warned of each call. */
  readonly #warnedAtMs = new SparseMap<ApiCall, number>();

  /** @param startedMs when the call began. */
  failed(call: ApiCall, error: KubeError, random: Random, times: { startedMs: number; nowMs: number }): ApiFailure {
    const known = this.#failures.get(call);
    const failures = (known?.failures ?? 0) + 1;
    const urgent = takesTaintOff(call) && failures < URGENT_TRIES;
    const longestMs = urgent ? UNTAINT_RETRY_MAX_MS : API_RETRY_MAX_MS;
    const ownMs = backoffMs(random, API_RETRY_MIN_MS, longestMs, failures - 1);
    const failure = {
      call,
      message: error.nextStep === undefined ? error.message : `${error.message}: ${error.nextStep}`,
      refused: !error.retryable,
      failures,
      // The host may be running despite the taint, so removing it does not wait for Retry-After.
      retryAtMs: times.nowMs + (urgent ? ownMs : Math.max(ownMs, error.retryAfterMs ?? 0)),
      sinceMs: known?.sinceMs ?? times.startedMs,
    };
    this.#failures.set(call, failure);
    return failure;
  }

  /**
   * Whether a warning to the operator is due: after API_REPORT_AFTER_MS, and again after each API_REPEAT_MS, because
   * Events expire.
   */
  isWarningDue({ call, sinceMs }: ApiFailure, nowMs: number): boolean {
    const warnedAtMs = this.#warnedAtMs.get(call) ?? -Infinity;
    if (nowMs - sinceMs < API_REPORT_AFTER_MS || nowMs - warnedAtMs < API_REPEAT_MS) return false;
    this.#warnedAtMs.set(call, nowMs);
    return true;
  }

  succeeded(call: ApiCall): void {
    this.#failures.delete(call);
    this.#warnedAtMs.delete(call);
  }

  /** Forgets all failures. Call it when the state changes, because other calls follow. */
  clear(): void {
    this.#failures.clear();
    this.#warnedAtMs.clear();
  }

  /** Failures in a row of one kind of call. */
  failuresOf(call: ApiCall): number {
    return this.#failures.get(call)?.failures ?? 0;
  }

  /** The time until all of `calls` may be made, in milliseconds; 0 if they may be made now. */
  waitMs(calls: readonly ApiCall[], nowMs: number): number {
    const waitsMs = calls.map((call) => (this.#failures.get(call)?.retryAtMs ?? -Infinity) - nowMs);
    return Math.max(0, ...waitsMs);
  }

  /** Of the calls that are still being tried, the one that has failed for the longest time. */
  oldest(nowMs: number): ApiFailure | undefined {
    for (const [call, { retryAtMs }] of this.#failures) {
      const afterMs = call === "taint" ? TAINT_FORGOTTEN_AFTER_MS : FORGOTTEN_AFTER_MS;
      if (nowMs > retryAtMs + afterMs) this.#failures.delete(call);
    }
    return [...this.#failures.values()].toSorted((a, b) => a.sinceMs - b.sinceMs)[0];
  }
}
