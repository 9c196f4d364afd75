import type { Reason } from "../model/reasons.ts";
import type { SentOrder } from "../model/observations.ts";
import type { Now, Snapshot, Walk } from "../model/snapshot.ts";
import type { Attempt, Outcome } from "../model/state.ts";
import type { ConditionChange, StatusChange } from "../model/status.ts";
import { changeStatus, conditionOf, processing } from "../model/status.ts";
import { CLAIM_RECHECK_MS, DEVICE_FINAL_RETRY_MS, IDENTITY_AGE_MAX_MS } from "../model/timings.ts";
import type { Stop } from "../model/hold.ts";
import type { Decision, Effect } from "../model/decision.ts";
import { allowsOn } from "../../../bmc/topology.ts";
import type { IdentityVerdict } from "../../../bmc/topology.ts";

// The moves that every state is made of. All are pure.

/** Runs one effect. */
export function run(effect: Effect): Decision {
  return { notes: [], effects: [effect] };
}

/** Looks again in `inMs` milliseconds, or earlier if something changes; never later than the state's deadline. */
export function wait(snapshot: Snapshot, inMs: number): Decision {
  return { notes: [], effects: [], nextCheckMs: Math.max(0, Math.min(inMs, Math.max(snapshot.remainingMs, 0))) };
}

/** Stores a step, then runs `effects`. */
export function move(snapshot: Snapshot, now: Now, change: StatusChange, effects: readonly Effect[] = []): Decision {
  return { ...changeStatus(snapshot, now, change), effects };
}

/** Stays in the state and says why; looks again in `inMs`, or where that is absent when something changes. */
export function waitBecause(snapshot: Snapshot, now: Now, reason: Reason, message: string, inMs?: number): Decision {
  const said = conditionOf(snapshot.status, "Processing");
  if (said?.status === "True" && said.reason === reason && said.message === message) {
    return { notes: [], effects: [], ...(inMs !== undefined && { nextCheckMs: inMs }) };
  }
  return move(snapshot, now, {
    to: snapshot.state.name,
    step: reason,
    message,
    warning: true,
    conditions: processing(reason, message),
  });
}

/** Whether `stop` holds an order: the stop switch holds power-offs alone, so that no host stays off for it. */
export function holds(stop: Stop | undefined, action: SentOrder["action"]): boolean {
  return stop !== undefined && (action === "ForceOff" || stop.reason === "Maintenance");
}

/**
 * What holds a power order, in a state that is about to send it. While it does the remediation waits and its time stands
 * still: once the order may be sent, the state starts anew with `timeoutMs`.
 */
export function stopGate(
  snapshot: Snapshot,
  now: Now,
  action: SentOrder["action"],
  attempt: Attempt,
  timeoutMs: number,
): Decision | undefined {
  const { stop } = snapshot;
  if (stop !== undefined && holds(stop, action)) {
    return waitBecause(snapshot, now, stop.reason, stop.message, waitsForReadingMs(snapshot, stop));
  }
  if (!saysHeld(snapshot)) return undefined;
  const message = "power orders are allowed again";
  return move(snapshot, now, {
    to: snapshot.state.name,
    step: "Resumed",
    message,
    attempt: { ...attempt, deadlineMs: now.epochMs + timeoutMs },
    conditions: processing("Resumed", message),
  });
}

/**
 * For how long a stop is waited for that holds only since nothing can be read of it: nobody is known to have stopped anything, so
 * nothing is undone for it before the time of the state is over. Undefined for any other, and once that time is over.
 */
export function waitsForReadingMs({ remainingMs }: Snapshot, stop: Stop): number | undefined {
  return stop.isUnread === true && remainingMs > 0 ? remainingMs : undefined;
}

/** Whether the remediation says that power orders of it are held. */
export function saysHeld({ status }: Snapshot): boolean {
  const said = conditionOf(status, "Processing")?.reason;
  return said === "Paused" || said === "Maintenance";
}

/**
 * An agent never powers off the node that it runs on: nobody would power it on again. Another one takes the lease over, and
 * where none does, the state runs out of its time. The reason is stored first, so the lease is handed over once.
 */
export function ownNodeGate(snapshot: Snapshot, now: Now): Decision | undefined {
  if (!snapshot.runsHere) return undefined;
  const waiting = waitBecause(snapshot, now, "OwnNode", ownNodeMessage(snapshot), Math.max(snapshot.remainingMs, 0));
  return waiting.status === undefined ? waiting : { ...waiting, effects: [{ do: "handOver" }] };
}

export function ownNodeMessage({ nodeName }: Snapshot): string {
  return `this agent runs on node ${nodeName}, so it hands its lease over: another agent has to power it off; run a second replica where there is none`;
}

/** Waits out a device's failure; fails for good where more tries would do harm. Undefined where the device may be called. */
export function deviceGate(snapshot: Walk, now: Now): Decision | undefined {
  const { device } = snapshot.seen;
  if (device === undefined) return undefined;
  if (device.final) return fail(snapshot, now, device.reason, device.message);
  const inMs = device.retryAtMs - now.monotonicMs;
  return inMs <= 0
    ? undefined
    : waitBecause(snapshot, now, device.reason, device.message, Math.min(inMs, Math.max(snapshot.remainingMs, 0)));
}

/**
 * Sees to it that the host's identity is verified right now. Undefined where it is.
 *
 * @param order an On needs less: the host was verified before its power-off.
 */
export function identityGate(snapshot: Walk, now: Now, order: "ForceOff" | "On" = "ForceOff"): Decision | undefined {
  const verdict = identityVerdict(snapshot, now);
  if (verdict === undefined) return run({ do: "verifyIdentity" });
  if (verdict.verified || (order === "On" && allowsOn(verdict))) return undefined;
  const reason = verdict.reason === "Mismatch" ? "IdentityMismatch" : "IdentityUnknown";
  return fail(snapshot, now, reason, verdict.message, [
    { type: "IdentityVerified", status: "False", reason, message: verdict.message },
  ]);
}

/** What a check of the identity found that is fresh enough for a power order; undefined where one is due. */
export function identityVerdict(snapshot: Walk, now: Now): IdentityVerdict | undefined {
  const { identity } = snapshot.seen;
  return identity === undefined || now.monotonicMs - identity.atMs > IDENTITY_AGE_MAX_MS ? undefined : identity.verdict;
}

/** The attempt did not help: the next one begins, or the verdict is Failed. */
export function failAttempt(snapshot: Walk, now: Now, reason: Reason, message: string): Decision {
  const { plan, status, attempt } = snapshot;
  const begun = (status.retryCount ?? 0) + 1;
  const budget = 1 + plan.retryLimit;
  if (begun < budget) return beginAttempt(snapshot, now, attempt.kind, `${reason}: ${message}`);
  if (plan.type !== "Escalate" || attempt.kind === "Reprovision") return fail(snapshot, now, reason, message);
  const proven = status.provenReboots ?? 0;
  if (proven < budget) {
    const why = `${reason}: ${message}; not reprovisioned: only ${proven} of ${budget} reboots proved the host off`;
    return fail(snapshot, now, "RebootsNotProven", why);
  }
  return beginAttempt(snapshot, now, "Reprovision", `${reason}: ${message}; the reboots are spent`);
}

/**
 * The same from a state in which the host is on, and its place among those that are remediated at once was given back: a further
 * power cycle waits for its turn, and the node may come back meanwhile.
 */
export function failAttemptInTurn(walk: Walk, now: Now, reason: Reason, message: string): Decision {
  const next = failAttempt(walk, now, reason, message);
  if (next.status?.phase !== "Verifying") return next;
  const { turn } = walk;
  if (turn === undefined) return run({ do: "askForTurn" });
  // The quorum of etcd is looked at live before the power-off.
  const waits = !turn.granted && turn.reason === "WaitingForTurn";
  return waits ? waitBecause(walk, now, turn.reason, turn.message, CLAIM_RECHECK_MS) : next;
}

/** Begins a further power cycle. What the last one did to the host's power is carried over: an undo may owe it an On. */
function beginAttempt(snapshot: Walk, now: Now, kind: Attempt["kind"], why: string): Decision {
  const { plan, status, attempt } = snapshot;
  const retryCount = (status.retryCount ?? 0) + 1;
  const message = `attempt ${retryCount + 1} (${kind}) begins: ${why}`;
  return move(snapshot, now, {
    to: "Verifying",
    step: "AttemptFailed",
    message,
    warning: true,
    attempt: newAttempt(snapshot, now, kind, attempt, plan.powerOffTimeoutMs),
    conditions: [...processing("Verifying", message), ...untouched("NewAttempt", message)],
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
export function untouched(reason: string, message: string): ConditionChange[] {
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
  conditions: readonly ConditionChange[] = [],
): Decision {
  return undo(snapshot, now, { verdict: "Failed", reason, message }, conditions);
}

/** Begins to take back what was done. */
export function undo(
  snapshot: Snapshot,
  now: Now,
  outcome: Outcome,
  conditions: readonly ConditionChange[] = [],
): Decision {
  const { plan, state } = snapshot;
  // A device that refuses us for good is asked once more, after a while: there must be time for that.
  const patienceMs = snapshot.seen.device?.final === true ? DEVICE_FINAL_RETRY_MS : 0;
  const deadlineMs = now.epochMs + patienceMs + plan.powerOnTimeoutMs;
  const begun =
    "attempt" in state && state.attempt !== undefined
      ? state.attempt
      : newAttempt(snapshot, now, "Reboot", undefined, plan.powerOnTimeoutMs);
  return move(snapshot, now, {
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
