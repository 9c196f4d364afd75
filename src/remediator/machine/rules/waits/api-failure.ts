import { transition } from "../transitions.ts";
import type { Reason } from "../../model/decision/reasons.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import { isFinal, mayHaveTurnedOff } from "../../model/decision/state.ts";
import { statusCondition, processing } from "../../model/status.ts";
import { API_REPORT_AFTER_MS } from "../../model/decision/timings.ts";
import type { Decision } from "../../model/decision/decision.ts";

// What a remediation reports about API calls that keep failing. Pure.

/** Reasons that decide about the deadline when their wait ends, so ApiFailing must not replace them. */
const WAITS_FOR_OTHERS: readonly (string | undefined)[] = [
  "Paused",
  "PauseUnknown",
  "Maintenance",
  "ClusterUnreachable",
  "ClusterExchanged",
  "InputUnread",
] satisfies Reason[];

/**
 * Reports once that an API call that the remediation needs keeps failing, and what this means for the host. Undefined
 * if there is nothing to report, or if the failing call is the one that stores the status.
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
 * Reports that API calls succeed again; undefined if no failure was reported. An undo gets its time again for the steps
 * that failed.
 */
export function reportApiRecovered(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, observations, status } = snapshot;
  if (observations.kube !== undefined || isFinal(state.name)) return undefined;
  if (statusCondition(status, "Processing")?.reason !== "ApiFailing") return undefined;
  const message = "calls to the API succeed again";
  const deadlineMs = now.epochMs + snapshot.strategy.powerOnTimeoutMs;
  return transition(snapshot, now, {
    to: state.name,
    step: "ApiAnswers",
    message,
    ...(state.name === "Undoing" && { attempt: { ...state.attempt, deadlineMs } }),
    conditions: processing(state.name, message),
  });
}

/** The next step for the operator. */
function nextStepOf({ state, observations, nodeName }: Snapshot): string {
  const advice = `look for a failing admission webhook, a missing RBAC permission, or an overloaded API server`;
  const isOff = "attempt" in state && state.attempt !== undefined && mayHaveTurnedOff(state.attempt);
  if (!isOff) return advice;
  return observations.taintCleared
    ? `${advice}: the host may be OFF, and is powered on at the deadline of this state`
    : `${advice}: the host stays OFF while node ${nodeName} may have the out-of-service taint. If that cannot be fixed, remove the taint by hand`;
}
