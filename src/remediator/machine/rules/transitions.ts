import { cycleSettledAtMs } from "./proof/pending-cycle.ts";
import type { Reason } from "../model/decision/reasons.ts";
import type { Now, Snapshot, AttemptSnapshot } from "../model/facts/snapshot.ts";
import type { Attempt, Outcome } from "../model/decision/state.ts";
import type { ConditionUpdate, StatusStep } from "../model/status.ts";
import { changeStatus, statusCondition, processing } from "../model/status.ts";
import { CLAIM_RECHECK_MS, DEVICE_FINAL_RETRY_MS, IDENTITY_AGE_MAX_MS } from "../model/decision/timings.ts";
import type { Decision, Effect } from "../model/decision/decision.ts";
import { allowsOn } from "../../../bmc/identity/identity-check.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";

// The decisions that every state is made of. Functions that begin with `ensure` return what has to be done first, or
// undefined if nothing is left to do. All are pure.

/** Runs one effect. */
export function run(effect: Effect): Decision {
  return { notes: [], effects: [effect] };
}

/**
 * Checks again in `inMs` milliseconds, earlier if something changes, and never later than the deadline of the state.
 */
export function wait(snapshot: Snapshot, inMs: number): Decision {
  return { notes: [], effects: [], nextCheckMs: Math.max(0, Math.min(inMs, Math.max(snapshot.remainingMs, 0))) };
}

/** Stores a step, then runs `effects`. */
export function transition(
  snapshot: Snapshot,
  now: Now,
  change: StatusStep,
  effects: readonly Effect[] = [],
): Decision {
  return { ...changeStatus(snapshot, now, change), effects };
}

/**
 * Stays in the state and reports why. Checks again in `inMs` milliseconds, or only when something changes if `inMs` is
 * absent.
 */
export function waitBecause(snapshot: Snapshot, now: Now, reason: Reason, message: string, inMs?: number): Decision {
  const reported = statusCondition(snapshot.status, "Processing");
  if (reported?.status === "True" && reported.reason === reason && reported.message === message) {
    return { notes: [], effects: [], ...(inMs !== undefined && { nextCheckMs: inMs }) };
  }
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: reason,
    message,
    warning: true,
    conditions: processing(reason, message),
  });
}

/**
 * Hands the lease over if the agent runs on the node that is to be powered off: an agent that powered its own host off
 * could not power it on again. If no other agent takes the lease, the state reaches its deadline. The reason is stored
 * first, so that the lease is handed over once.
 */
export function ensureNotOwnNode(snapshot: Snapshot, now: Now): Decision | undefined {
  if (!snapshot.runsHere) return undefined;
  const waiting = waitBecause(snapshot, now, "OwnNode", ownNodeMessage(snapshot), Math.max(snapshot.remainingMs, 0));
  return waiting.status === undefined ? waiting : { ...waiting, effects: [{ do: "handOver" }] };
}

export function ownNodeMessage({ nodeName }: Snapshot): string {
  return `this agent runs on node ${nodeName}, so it hands its lease over: another agent has to power it off; run a second replica if there is none`;
}

/**
 * Waits until a failed device may be called again. Fails permanently if more calls would do harm. Undefined if the
 * device may be called now.
 */
export function ensureDeviceUsable(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { device } = snapshot.observations;
  if (device === undefined) return undefined;
  if (device.final) return fail(snapshot, now, device.reason, device.message);
  const inMs = device.retryAtMs - now.monotonicMs;
  return inMs <= 0
    ? undefined
    : waitBecause(snapshot, now, device.reason, device.message, Math.min(inMs, Math.max(snapshot.remainingMs, 0)));
}

/**
 * Verifies the identity of the host. Undefined if it is verified now.
 *
 * @param order an On needs less: the host was verified before its power-off.
 */
export function ensureIdentity(
  snapshot: AttemptSnapshot,
  now: Now,
  order: "ForceOff" | "On" = "ForceOff",
): Decision | undefined {
  const check = freshIdentityCheck(snapshot, now);
  if (check === undefined) return run({ do: "verifyIdentity" });
  if (check.verified || (order === "On" && allowsOn(check))) return undefined;
  const reason = check.reason === "Mismatch" ? "IdentityMismatch" : "IdentityUnknown";
  return fail(snapshot, now, reason, check.message, [
    { type: "IdentityVerified", status: "False", reason, message: check.message },
  ]);
}

/** The result of an identity check that is fresh enough for a power order; undefined if a check is due. */
export function freshIdentityCheck(snapshot: AttemptSnapshot, now: Now): IdentityCheck | undefined {
  const { identity } = snapshot.observations;
  return identity === undefined || now.monotonicMs - identity.atMs > IDENTITY_AGE_MAX_MS ? undefined : identity.check;
}

/** The attempt did not help: the next one begins, or the verdict is Failed. */
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
  return beginAttempt(snapshot, now, "Reprovision", `${reason}: ${message}; the reboots are spent`);
}

/**
 * The same from a state in which the host is on and the remediation has released its slot: a further power cycle waits
 * for admission, and the node may come back meanwhile.
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

/**
 * Begins a further power cycle. What the last one did to the host's power is carried over: an undo may owe it an On.
 */
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

/** A fresh attempt in its first state. */
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

/** The conditions of a power cycle of which nothing has been done. */
export function notYetDone(reason: string, message: string): ConditionUpdate[] {
  return (["PowerOffConfirmed", "WorkloadsReleased", "PoweredOn", "NodeRestored"] as const).map((type) => ({
    type,
    status: "False",
    reason,
    message,
  }));
}

/** No attempt follows: all is taken back, then Succeeded=False with this reason. */
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
  const { strategy, state } = snapshot;
  // A device that refuses us permanently is asked again, after a while: there must be time for that.
  const patienceMs = snapshot.observations.device?.final === true ? DEVICE_FINAL_RETRY_MS : 0;
  // A reading On counts only once an AC cycle can no longer cut the host off.
  const beginsMs = Math.max(now.epochMs + patienceMs, cycleSettledAtMs(snapshot));
  const deadlineMs = beginsMs + strategy.powerOnTimeoutMs;
  const begun =
    "attempt" in state && state.attempt !== undefined
      ? state.attempt
      : newAttempt(snapshot, now, "Reboot", undefined, strategy.powerOnTimeoutMs);
  return transition(snapshot, now, {
    to: "Undoing",
    step: outcome.reason,
    message: outcome.message,
    warning: outcome.verdict !== "Deleted",
    // What was ordered on so far does not count: the host must not be left off for it.
    attempt: { ...begun, orders: begun.action === "On" ? 0 : begun.orders, deadlineMs },
    outcome,
    conditions: [...processing("Undoing", outcome.message), ...conditions],
  });
}
