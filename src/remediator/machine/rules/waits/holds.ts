import type { SentOrder } from "../../model/facts/observations.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import type { Attempt } from "../../model/decision/state.ts";
import { statusCondition, processing } from "../../model/status.ts";
import type { Hold } from "../../model/facts/hold.ts";
import type { Decision } from "../../model/decision/decision.ts";
import { waitBecause, transition } from "../transitions.ts";

/** Whether `hold` holds this order: the stop switch holds power-offs alone, so that no host stays off for it. */
export function holdsOrder(hold: Hold | undefined, action: SentOrder["action"]): boolean {
  return hold !== undefined && (action === "ForceOff" || hold.reason === "Maintenance");
}

/**
 * What holds a power order, in a state that is about to send it. The remediation waits. A pause or
 * maintenance stops its clock: once the order may be sent, the state begins again with `timeoutMs`. A switch that
 * cannot be read does not, else reads that fail now and then would keep a host off without end.
 */
export function ensureNotHeld(
  snapshot: Snapshot,
  now: Now,
  action: SentOrder["action"],
  attempt: Attempt,
  timeoutMs: number,
): Decision | undefined {
  const { hold } = snapshot;
  const reported = reportedHold(snapshot);
  if (hold !== undefined && holdsOrder(hold, action)) {
    const begun = pauseUnknown(snapshot, now, hold, attempt, timeoutMs);
    return begun ?? waitBecause(snapshot, now, hold.reason, hold.message, unreadPauseWaitMs(snapshot, hold));
  }
  if (reported === undefined) return undefined;
  const message = "power orders are allowed again";
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "Resumed",
    message,
    attempt: { ...attempt, deadlineMs: reported === "PauseUnknown" ? attempt.deadlineMs : now.epochMs + timeoutMs },
    conditions: processing("Resumed", message),
  });
}

/**
 * Reports that a pause or maintenance can no longer be read. The clock of the state stood still for it, so the
 * deadline may be long past: the time of the state begins again. Undefined if no pause or maintenance was reported.
 */
export function pauseUnknown(
  snapshot: Snapshot,
  now: Now,
  hold: Hold,
  attempt: Attempt,
  timeoutMs: number,
): Decision | undefined {
  const reported = reportedHold(snapshot);
  if (hold.reason !== "PauseUnknown" || reported === undefined || reported === "PauseUnknown") return undefined;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: hold.reason,
    message: hold.message,
    warning: true,
    attempt: { ...attempt, deadlineMs: now.epochMs + timeoutMs },
    conditions: processing(hold.reason, hold.message),
  });
}

/**
 * How long to wait for a switch that cannot be read: no operator is known to have stopped anything, so nothing is
 * undone before the time of the state is over. Undefined for a pause or maintenance that was read, and once that time
 * is over.
 */
export function unreadPauseWaitMs({ remainingMs }: Snapshot, hold: Hold): number | undefined {
  return hold.reason === "PauseUnknown" && remainingMs > 0 ? remainingMs : undefined;
}

const HOLD_REASONS: readonly Hold["reason"][] = ["Paused", "PauseUnknown", "Maintenance"];

/**
 * Why power orders are held, according to the condition of the remediation; undefined if the condition does not report
 * a hold.
 */
export function reportedHold({ status }: Snapshot): Hold["reason"] | undefined {
  const reported = statusCondition(status, "Processing")?.reason;
  return HOLD_REASONS.find((hold) => hold === reported);
}
