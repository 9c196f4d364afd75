import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { keyOf } from "../../kube/watched.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { fieldsOf } from "../effects/context/effect-context.ts";
import type { Decision } from "../machine/model/decision/decision.ts";
import { REFRESH_MAX_MS } from "../machine/model/decision/timings.ts";
import type { ApiCall } from "../machine/model/facts/api-failure.ts";
import type { RemediationSession } from "./session/session.ts";

// What follows when a call to the API server fails: a live read, a wait, a report.

/** The longest wait for the API server at a time, because the power of a fenced host must still be checked. */
const API_WAIT_MAX_MS = 1_000;
/**
 * How often the guard of a call may fail before the next time counts as a failure of the API server: an admission
 * policy refuses with the same status. Successes of other calls in between do not reset the number.
 */
const CONFLICTS_MAX = 10;

/** The call of a decision that is being made. */
export interface CallProgress {
  present: ApiCall;
  startedMs: number;
}

/**
 * Whether only the taint is missing, and its last try has failed: the next one follows after a long wait. Without a
 * proof of Off, something else is awaited, which has a reason of its own.
 */
export function awaitsTaint({ state, observations: { kube, power } }: RemediationSession): boolean {
  const isProven = state.name === "PoweringOff" && state.attempt.sent && power.provenAtMs !== undefined;
  return isProven && kube?.call === "taint";
}

/**
 * The milliseconds that a decision must wait because one of its calls has failed; 0 if it may be carried out now. This
 * includes effects on devices, because a device is opened with a Secret of the API server.
 */
export function waitForApi(session: RemediationSession, decision: Decision): number {
  const calls: ApiCall[] = decision.effects.map((effect) => effect.do);
  if (decision.status !== undefined) calls.push("store");
  return Math.min(session.apiFailures.waitMs(calls, session.now().monotonicMs), API_WAIT_MAX_MS);
}

/**
 * Handles an error of a step. After a failed guard, it reads the remediation live, and the next step decides again. It
 * reports any other failure of the API server, and the call is repeated after a backoff.
 *
 * @returns false if the remediation is gone.
 */
export async function recover(
  runtime: KubeRuntime,
  session: RemediationSession,
  calls: CallProgress,
  error: unknown,
  signal: AbortSignal,
): Promise<boolean> {
  const stale = isKubeError(error, "Conflict", "NotFound", "Invalid", "AlreadyExists");
  if (!isKubeError(error)) throw error;
  const { present: call, startedMs } = calls;
  const conflicts = session.conflicts.get(call) ?? 0;
  if (stale && conflicts < CONFLICTS_MAX) {
    session.conflicts.set(call, conflicts + 1);
    return refresh(runtime, session, signal);
  }
  const times = { startedMs, nowMs: session.now().monotonicMs };
  const failure = session.apiFailures.failed(call, error, runtime.random, times);
  const { failures } = failure;
  // From now on, a failed guard leads to one live read before it counts as a failure again.
  session.conflicts.set(call, CONFLICTS_MAX - 1);
  runtime.logger.warn({ ...fieldsOf(session), call, failures, err: error }, "API call failed, will try again");
  if (session.apiFailures.isWarningDue(failure, times.nowMs)) {
    runtime.events.record({
      regarding: session.remediation,
      type: "Warning",
      reason: "ApiFailing",
      action: session.status.phase ?? "Resolving",
      note: failure.message,
    });
  }
  if (isKubeError(error, "Forbidden", "Unauthorized")) {
    runtime.events.record({
      regarding: session.remediation,
      type: "Warning",
      reason: "ApiRefused",
      action: session.status.phase ?? "Resolving",
      note: error.message,
    });
  }
  return true;
}

/** Reads the remediation live. @returns false if it is gone. */
export async function refresh(
  runtime: KubeRuntime,
  session: RemediationSession,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const key = keyOf(session.remediation);
    const current = await withDeadline(
      runtime.clock,
      "reading the remediation live",
      REFRESH_MAX_MS,
      signal,
      (bounded) => runtime.client.get<BareMetalRemediation>(BARE_METAL_REMEDIATIONS, key, bounded),
    );
    if (current.metadata.uid !== session.uid) return false;
    session.learn(current);
    return true;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    const isTransient = error instanceof DeadlineError || (isKubeError(error) && error.retryable);
    if (signal.aborted || !isTransient) throw error;
    // The remediation may still exist. The next read shows whether it does, and so does the guard of the next write.
    runtime.logger.warn({ ...fieldsOf(session), err: error }, "remediation not read live, will try again");
    return true;
  }
}
