import { move } from "./transitions.ts";
import type { Reason } from "../model/reasons.ts";
import type { Now, Snapshot } from "../model/snapshot.ts";
import { isFinal, mayHaveTurnedOff } from "../model/state.ts";
import { conditionOf, processing } from "../model/status.ts";
import { API_REPORT_AFTER_MS } from "../model/timings.ts";
import type { Decision } from "../model/decision.ts";

// What a remediation says of calls to the API that keep failing. Pure.

/** What a remediation waits for already, and counts its time by. */
const WAITS_FOR_OTHERS: readonly (string | undefined)[] = [
  "Paused",
  "Maintenance",
  "ClusterUnreachable",
  "ClusterExchanged",
  "InputUnread",
] satisfies Reason[];

/**
 * Says, once, that a call to the API keeps failing that the remediation needs, and what becomes of the host meanwhile. Undefined
 * where there is nothing to say, or the status cannot be stored either.
 */
export function reportTrouble(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, seen, status } = snapshot;
  const { kube } = seen;
  const said = conditionOf(status, "Processing")?.reason;
  if (kube === undefined || kube.call === "store" || isFinal(state.name)) return undefined;
  if (now.monotonicMs - kube.sinceMs < API_REPORT_AFTER_MS) return undefined;
  if (said === "ApiFailing" || WAITS_FOR_OTHERS.includes(said)) return undefined;
  const message = `${kube.message}; ${nextStepOf(snapshot)}`;
  return move(snapshot, now, {
    to: state.name,
    step: "ApiFailing",
    message,
    warning: true,
    conditions: processing("ApiFailing", message),
  });
}

/** Says that the calls are made again; undefined where nothing else was said. What an undo could not do meanwhile it has time for now. */
export function reportTroubleOver(snapshot: Snapshot, now: Now): Decision | undefined {
  const { state, seen, status } = snapshot;
  if (seen.kube !== undefined || isFinal(state.name)) return undefined;
  if (conditionOf(status, "Processing")?.reason !== "ApiFailing") return undefined;
  const message = "no call to the API fails";
  const deadlineMs = now.epochMs + snapshot.plan.powerOnTimeoutMs;
  return move(snapshot, now, {
    to: state.name,
    step: "ApiAnswers",
    message,
    ...(state.name === "Undoing" && { attempt: { ...state.attempt, deadlineMs } }),
    conditions: processing(state.name, message),
  });
}

/** What an operator has to do. */
function nextStepOf({ state, seen, nodeName }: Snapshot): string {
  const look = `look for a failing admission webhook, a right that was taken away, or an API server that is overloaded`;
  const isOff = "attempt" in state && state.attempt !== undefined && mayHaveTurnedOff(state.attempt);
  if (!isOff) return look;
  return seen.taintCleared
    ? `${look}: the host may be OFF, and is powered on when the time of this state is over`
    : `${look}: the host stays OFF while node ${nodeName} may have the out-of-service taint. If that cannot be fixed, remove the taint by hand`;
}
