import type { Reason } from "../model/decision/reasons.ts";
import type { Now, Snapshot } from "../model/facts/snapshot.ts";
import type { StatusStep } from "../model/status.ts";
import { changeStatus, hasMessage, statusCondition, processing } from "../model/status.ts";
import type { Decision, Effect } from "../model/decision/decision.ts";

// The decisions that every state is made of.

/** Runs one effect. */
export function run(effect: Effect): Decision {
  return { notes: [], effects: [effect] };
}

/**
 * Decides again in `inMs` milliseconds, earlier if something changes, and at the latest at the deadline of the state.
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
 * Stays in the state and reports why. Decides again in `inMs` milliseconds or after a change, or only after a change if
 * `inMs` is absent.
 */
export function waitBecause(snapshot: Snapshot, now: Now, reason: Reason, message: string, inMs?: number): Decision {
  const reported = statusCondition(snapshot.status, "Processing");
  if (reported?.status === "True" && reported.reason === reason && hasMessage(reported, message)) {
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
