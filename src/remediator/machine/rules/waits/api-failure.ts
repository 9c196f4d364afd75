import { transition } from "../transitions.ts";
import type { Reason } from "../../model/decision/reasons.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import { isFinal, mayHaveTurnedOff } from "../../model/decision/state.ts";
import { statusCondition, processing } from "../../model/status.ts";
import { API_REPORT_AFTER_MS } from "../../model/decision/timings.ts";
import type { Decision } from "../../model/decision/decision.ts";

// What a remediation says of calls to the API that keep failing. Pure.

/** What a remediation waits for already, and counts its time by. */
const WAITS_FOR_OTHERS: readonly (string | undefined)[] = [
  "Paused",
  "PauseUnknown",
  "Maintenance",
  "ClusterUnreachable",
  "ClusterExchanged",
  "InputUnread",
] satisfies Reason[];

/**
 * Reports once that an API call which the remediation needs keeps failing, and what this means for the host.
 * Undefined if there is nothing to report, or if the status cannot be stored either.
 */
export function reportApiFailure(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, observations, status } = snapshot;
  const { kube } = observations;
  const reported = statusCondition(status, "Processing")?.reason;
  if (kube === undefined || kube.call === "store" || isFinal(state.name)) return undefined;
  if (now.monotonicMs - kube.sinceMs < API_REPORT_AFTER_MS) return undefined;
  if (reported === "ApiFailing" || WAITS_FOR_OTHERS.includes(reported)) return undefined;
  const message = `${kube.message}; ${nextStepOf(snapshot)}`;
  return transition(snapshot, now, {
    to: state.name,
    step: "ApiFailing",
    message,
    warning: true,
    conditions: processing("ApiFailing", message),
  });
}

/**
 * Reports that API calls succeed again; undefined if no failure was reported. An undo gets new time for what it could
 * not do.
 */
export function reportApiRecovered(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, observations, status } = snapshot;
  if (observations.kube !== undefined || isFinal(state.name)) return undefined;
  if (statusCondition(status, "Processing")?.reason !== "ApiFailing") return undefined;
  const message = "no call to the API fails";
  const deadlineMs = now.epochMs + snapshot.strategy.powerOnTimeoutMs;
  return transition(snapshot, now, {
    to: state.name,
    step: "ApiAnswers",
    message,
    ...(state.name === "Undoing" && { attempt: { ...state.attempt, deadlineMs } }),
    conditions: processing(state.name, message),
  });
}

/** What an operator has to do. */
function nextStepOf({ state, observations, nodeName }: Snapshot): string {
  const advice = `look for a failing admission webhook, a missing RBAC permission, or an overloaded API server`;
  const isOff = "attempt" in state && state.attempt !== undefined && mayHaveTurnedOff(state.attempt);
  if (!isOff) return advice;
  return observations.taintCleared
    ? `${advice}: the host may be OFF, and is powered on at the deadline of this state`
    : `${advice}: the host stays OFF while node ${nodeName} may have the out-of-service taint. If that cannot be fixed, remove the taint by hand`;
}
