import type { SentOrder } from "../../model/facts/observations.ts";
import type { Now, Snapshot } from "../../model/facts/snapshot.ts";
import type { Attempt } from "../../model/decision/state.ts";
import { statusCondition, processing } from "../../model/status.ts";
import type { Hold } from "../../model/facts/hold.ts";
import type { Decision } from "../../model/decision/decision.ts";
import { waitBecause, transition } from "../transitions.ts";

/** Whether `hold` holds this order. The stop switch holds only power-offs, so that no host stays off because of it. */
export function holdsOrder(hold: Hold | undefined, action: SentOrder["action"]): boolean {
  return hold !== undefined && (action === "ForceOff" || hold.reason === "Maintenance");
}

/**
 * Waits while a power order is held, in a state that is about to send it. After a pause or maintenance, the state gets
 * `timeoutMs` again. After a wait for a pause that could not be read, it does not: otherwise reads that fail now and
 * then would keep a host off forever. Undefined if the order may be sent.
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
 * Reports that the agent can no longer read whether the pause or maintenance it has reported still exists. The deadline
 * may have passed during the hold, so the state gets `timeoutMs` again. Undefined if no pause or maintenance was
 * reported.
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
 * How long to wait for a pause that cannot be read: until the deadline of the state, because there may be no pause.
 * Undefined after the deadline, and for a pause or maintenance that was read.
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
