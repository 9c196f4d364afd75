import type { Node, NodeCondition } from "../../../../api/kubernetes/core.ts";
import type { ClockOffset } from "../../../../kube/server-time.ts";
import type { Change } from "../../../../kube/watched.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { parseTimeMs } from "../../../../runtime/time.ts";
import { isNotable, SKEW_NOTABLE_MS } from "../../model/clock-skew.ts";

/** How late a change may be observed after its transition time, because watches and loaded API servers are slow. */
const LAG_MAX_MS = 5_000;

/** Since when a condition counts as having its status, on a clock that never jumps. */
export interface ConditionTimes {
  /** Now, on that clock. */
  nowMs(): number;
  /** Undefined if the condition has no transition time. */
  sinceMs(nodeName: string, condition: NodeCondition): number | undefined;
}

/**
 * Since when conditions have their status. The kubelet or the control plane writes a transition time by its own clock,
 * and the agent compares that time with another clock. If one of the clocks is wrong, a node that has just failed may
 * look as if it had failed long ago, and would be fenced too soon. Each of these rules can only make a fence later:
 *
 * - Time advances by the monotonic clock. The wall clock is read only once, so that setting it does not make a
 *   condition older.
 * - That reading is corrected by the API server's clock, if the two differ by more than `SKEW_NOTABLE_MS`.
 * - An observed change counts from at most `LAG_MAX_MS` before its observation.
 */
export class MonotonicTimes implements ConditionTimes {
  readonly #clock: Clock;
  readonly #aheadMs: number;
  /** Conditions whose transition time is replaced, by node and type. */
  readonly #corrected = new Map<string, Map<string, { written: string; sinceMs: number; offMs: number }>>();

  /** @param offset of the API server's clock; undefined if it is not known. */
  constructor(clock: Clock, offset: ClockOffset | undefined) {
    this.#clock = clock;
    const correctionMs = offset !== undefined && isNotable(offset) ? offset.minMs : 0;
    this.#aheadMs = clock.nowMs() + correctionMs - clock.monotonicMs();
  }

  nowMs(): number {
    return this.#aheadMs + this.#clock.monotonicMs();
  }

  sinceMs(nodeName: string, condition: NodeCondition): number | undefined {
    const corrected = this.#corrected.get(nodeName)?.get(condition.type);
    if (corrected?.written === condition.lastTransitionTime) return corrected?.sinceMs;
    return parseTimeMs(condition.lastTransitionTime);
  }

  /**
   * Observes a change of a node. Do not pass nodes that existed when the watch began, because this process did not
   * observe when their conditions changed.
   *
   * @returns how long ago the latest condition changed by its transition time, in milliseconds; undefined if no
   *   condition changed.
   */
  observe(change: Change<Node>): number | undefined {
    const { name } = change.object.metadata;
    if (change.type === "deleted") {
      this.#corrected.delete(name);
      return undefined;
    }
    let newestMs: number | undefined;
    const before = change.type === "updated" ? (change.previous.status.conditions ?? []) : [];
    for (const condition of change.object.status.conditions ?? []) {
      const { type, status, lastTransitionTime } = condition;
      const known = before.find((other) => other.type === type);
      if (known?.status === status && known.lastTransitionTime === lastTransitionTime) continue;
      const offMs = this.#observeCondition(name, condition);
      if (offMs !== undefined) newestMs = Math.min(newestMs ?? Infinity, offMs);
    }
    return newestMs;
  }

  /**
   * How far a transition time of a node was wrong when it was observed, as text for the operator; undefined if none was
   * wrong.
   *
   * @param matters whether an unhealthy condition has this type.
   */
  skewOf(nodeName: string, matters: (conditionType: string) => boolean): string | undefined {
    for (const [type, { offMs }] of this.#corrected.get(nodeName) ?? []) {
      if (!matters(type)) continue;
      const seconds = Math.round(Math.abs(offMs) / 1_000);
      const when = offMs > 0 ? `${seconds} s before it was observed` : `${seconds} s after it was observed`;
      return `condition ${type} of node ${nodeName} reports that it changed ${when}: clocks differ, or the watch is late; its duration counts from the observation`;
    }
    return undefined;
  }

  #observeCondition(nodeName: string, { type, lastTransitionTime }: NodeCondition): number | undefined {
    const conditions = this.#corrected.get(nodeName) ?? new Map();
    conditions.delete(type);
    const writtenMs = parseTimeMs(lastTransitionTime);
    const offMs = writtenMs === undefined ? undefined : this.nowMs() - writtenMs;
    if (offMs !== undefined && lastTransitionTime !== undefined && (offMs > LAG_MAX_MS || offMs < -SKEW_NOTABLE_MS)) {
      const sinceMs = offMs > 0 ? this.nowMs() - LAG_MAX_MS : this.nowMs();
      conditions.set(type, { written: lastTransitionTime, sinceMs, offMs });
    }
    if (conditions.size > 0) this.#corrected.set(nodeName, conditions);
    else this.#corrected.delete(nodeName);
    return offMs;
  }
}
