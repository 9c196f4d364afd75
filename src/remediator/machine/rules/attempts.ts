import { cycleSettledAtMs } from "./proof/pending-cycle.ts";
import type { Reason } from "../model/decision/reasons.ts";
import type { Now, Snapshot, AttemptSnapshot } from "../model/facts/snapshot.ts";
import type { Attempt, Outcome } from "../model/decision/state.ts";
import type { ConditionUpdate } from "../model/status.ts";
import { processing } from "../model/status.ts";
import { CLAIM_RECHECK_MS, DEVICE_FINAL_RETRY_MS } from "../model/decision/timings.ts";
import type { Decision } from "../model/decision/decision.ts";
import { run, transition, waitBecause } from "./transitions.ts";

// How an attempt ends: with the next attempt, or with an undo that leads to the verdict.

/** Ends an attempt that did not help: begins the next one, or fails if none is left. */
export function failAttempt(snapshot: AttemptSnapshot, now: Now, reason: Reason, message: string): Decision {
  const { strategy, status, attempt } = snapshot;
  const begun = (status.retryCount ?? 0) + 1;
  const budget = 1 + strategy.retryLimit;
  if (begun < budget) return beginAttempt(snapshot, now, attempt.kind, `${reason}: ${message}`);
  if (strategy.type !== "Escalate" || attempt.kind === "Reprovision") return fail(snapshot, now, reason, message);
  const proven = status.provenReboots ?? 0;
  if (proven < budget) {
    const why = `${reason}: ${message}; not reprovisioned: only ${proven} of ${budget} reboots proved the host off`;
    return fail(snapshot, now, "RebootsNotProven", why);
  }
  return beginAttempt(snapshot, now, "Reprovision", `${reason}: ${message}; no reboots are left`);
}

/**
 * Like `failAttempt`, in a state in which the host is on and the remediation has released its slot: a further power
 * cycle waits for admission, and the node may come back during the wait.
 */
export function failAttemptOnceAdmitted(
  snapshot: AttemptSnapshot,
  now: Now,
  reason: Reason,
  message: string,
): Decision {
  const next = failAttempt(snapshot, now, reason, message);
  if (next.status?.phase !== "Verifying") return next;
  const { admission } = snapshot;
  if (admission === undefined) return run({ do: "askForAdmission" });
  // The quorum of etcd is read live before the power-off.
  const waits = !admission.granted && admission.reason === "WaitingForTurn";
  return waits ? waitBecause(snapshot, now, admission.reason, admission.message, CLAIM_RECHECK_MS) : next;
}

/** Begins a further power cycle. The last power order is kept: an undo may have to power the host on because of it. */
function beginAttempt(snapshot: AttemptSnapshot, now: Now, kind: Attempt["kind"], why: string): Decision {
  const { strategy, status, attempt } = snapshot;
  const retryCount = (status.retryCount ?? 0) + 1;
  const message = `attempt ${retryCount + 1} (${kind}) begins: ${why}`;
  return transition(snapshot, now, {
    to: "Verifying",
    step: "AttemptFailed",
    message,
    warning: true,
    attempt: newAttempt(snapshot, now, kind, attempt, strategy.powerOffTimeoutMs),
    conditions: [...processing("Verifying", message), ...notYetDone("NewAttempt", message)],
    fields: { retryCount },
  });
}

/** A new attempt. It keeps the last power order and the boot override of `previous`, which an undo may have to undo. */
export function newAttempt(
  snapshot: Snapshot,
  now: Now,
  kind: Attempt["kind"],
  previous: Attempt | undefined,
  timeoutMs: number,
): Attempt {
  return {
    id: snapshot.freshId,
    kind,
    action: previous?.action ?? "None",
    actionAtMs: previous?.actionAtMs ?? now.epochMs,
    orders: 0,
    sent: previous?.sent ?? false,
    done: previous?.done ?? false,
    startedAtMs: now.epochMs,
    deadlineMs: now.epochMs + timeoutMs,
    offConfirmedAtMs: undefined,
    releasingSinceMs: undefined,
    bootOverride: previous?.bootOverride ?? false,
    secondTaint: true,
  };
}

/** The conditions at the beginning of a power cycle. */
export function notYetDone(reason: string, message: string): ConditionUpdate[] {
  return (["PowerOffConfirmed", "WorkloadsReleased", "PoweredOn", "NodeRestored"] as const).map((type) => ({
    type,
    status: "False",
    reason,
    message,
  }));
}

/** Fails without a further attempt: undoes everything, then stores Succeeded=False with this reason. */
export function fail(
  snapshot: Snapshot,
  now: Now,
  reason: Reason,
  message: string,
  conditions: readonly ConditionUpdate[] = [],
): Decision {
  return undo(snapshot, now, { verdict: "Failed", reason, message }, conditions);
}

/** Begins the undo. */
export function undo(
  snapshot: Snapshot,
  now: Now,
  outcome: Outcome,
  conditions: readonly ConditionUpdate[] = [],
): Decision {
  const { strategy, state, remediation } = snapshot;
  // An undo claims the host. A remediation that ends while it waits may have no finalizer yet.
  if (state.name === "Resolving" && !remediation.hasFinalizer && !remediation.deleting) {
    return run({ do: "addFinalizer" });
  }
  // A device that refuses permanently is called again after DEVICE_FINAL_RETRY_MS, so the undo must last longer.
  const patienceMs = snapshot.observations.device?.final === true ? DEVICE_FINAL_RETRY_MS : 0;
  // A reading On counts only once an AC cycle can no longer cut the host off.
  const beginsInMs = Math.max(patienceMs, cycleSettledAtMs(snapshot) - now.monotonicMs);
  const deadlineMs = now.epochMs + beginsInMs + strategy.powerOnTimeoutMs;
  const begun =
    "attempt" in state && state.attempt !== undefined
      ? state.attempt
      : newAttempt(snapshot, now, "Reboot", undefined, strategy.powerOnTimeoutMs);
  return transition(snapshot, now, {
    to: "Undoing",
    step: outcome.reason,
    message: outcome.message,
    warning: outcome.verdict !== "Deleted",
    // Earlier power-on orders do not count, so that the undo can still power the host on.
    attempt: { ...begun, orders: begun.action === "On" ? 0 : begun.orders, deadlineMs },
    outcome,
    conditions: [...processing("Undoing", outcome.message), ...conditions],
  });
}
