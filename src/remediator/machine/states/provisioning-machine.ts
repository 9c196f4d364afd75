import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import { keepProof } from "./releasing.ts";
import { fail, failAttempt } from "../rules/attempts.ts";
import { ensureDeviceUsable } from "../rules/preconditions.ts";
import { transition, run, wait } from "../rules/transitions.ts";
import type { Now, AttemptSnapshot } from "../model/facts/snapshot.ts";
import { statusCondition, nodeRejoined, processing } from "../model/status.ts";
import type { MachineReport, ReplacementReport } from "../model/facts/reprovision.ts";
import { isFresh, REREAD_MS } from "../model/facts/reprovision.ts";
import { leaveToOwner } from "../rules/admission/reprovision-checks.ts";
import type { Decision } from "../model/decision/decision.ts";

/** Announces that the Machine will be deleted, then deletes it. The host is still proven off. */
export function decideMachineDeletion(snapshot: AttemptSnapshot, now: Now): Decision {
  const { observations, status } = snapshot;
  if (snapshot.remainingMs <= 0) {
    const { reason, message } = observations.device ?? {
      reason: "ProvisionTimeout" as const,
      message: "the Machine could not be deleted in time",
    };
    return failAttempt(snapshot, now, reason, message);
  }
  const waiting = ensureDeviceUsable(snapshot, now) ?? keepProof(snapshot, now);
  if (waiting !== undefined) return waiting;
  const report = observations.machine;
  if (!isFresh(report, now.monotonicMs)) return run({ do: "examineMachine" });
  const left = leaveToOwner(snapshot, report, false, now);
  if (left !== undefined || report.owner === undefined) return left ?? run({ do: "examineMachine" });
  const announced = statusCondition(status, "PermanentNodeDeletionExpected")?.status === "True";
  if (announced && status.replacement?.owner.uid === report.owner.uid) return run({ do: "deleteMachine" });
  const message = `Machine ${status.machine?.name ?? ""} will be deleted, so that ${report.owner.kind} ${report.owner.name} creates a new Machine`;
  return transition(snapshot, now, {
    to: "Provisioning",
    step: "MachineDeletionExpected",
    message,
    attempt: snapshot.attempt,
    conditions: [{ type: "PermanentNodeDeletionExpected", status: "True", reason: "MachineDeletionExpected", message }],
    fields: { replacement: { owner: report.owner } },
  });
}

/**
 * Records that the Machine was deleted. Undefined if that is already recorded, or if the Machine is not yet being
 * deleted.
 */
export function recordIfDeleted(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { replacement } = snapshot.status;
  if (replacement === undefined || replacement.deletedAt !== undefined) return undefined;
  const { machine } = snapshot.observations;
  if (machine === undefined) return run({ do: "examineMachine" });
  return machine.state === "Present" ? undefined : recordDeletion(snapshot, replacement, machine, now);
}

/**
 * Waits for the Node of the new Machine after the old Machine was deleted. From then on the host belongs to the
 * controller that deprovisions it, so ironfence neither checks nor powers it. Undefined if the old Machine is not yet
 * being deleted.
 */
export function decideReplacement(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { observations, status } = snapshot;
  const { replacement } = status;
  if (replacement?.deletedAt === undefined) return recordIfDeleted(snapshot, now);
  const report = observations.replacement;
  if (report === undefined) return run({ do: "checkReplacement" });
  const isOver = snapshot.remainingMs <= 0;
  // The host is released when its deprovisioning has begun. If it were released earlier, the old system would boot.
  if (report.mayLetGo || report.nodeName !== undefined || isOver) {
    if (!observations.devicesClosed) return run({ do: "closeDevices" });
    if (!observations.hostReleased) return run({ do: "releaseHost", asItIs: observations.successor?.waiting === true });
  }
  if (report.nodeName !== undefined) return succeed(snapshot, replacement, report.nodeName, now);
  if (isOver) {
    const { kind, name } = replacement.owner;
    const message = `Machine ${status.machine?.name ?? ""} was deleted, but ${kind} ${name} has no new Machine that became a Ready node in time`;
    return fail(snapshot, now, "ReplacementTimeout", message);
  }
  return checkAgain(snapshot, report, now);
}

/**
 * For an undo after the Machine was deleted: keeps the host off until its deprovisioning has begun or the deadline of
 * the undo is reached. Undefined if the host may be released.
 */
export function awaitDeprovisioning(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  if (snapshot.status.replacement?.deletedAt === undefined || snapshot.remainingMs <= 0) return undefined;
  const report = snapshot.observations.replacement;
  if (report === undefined) return run({ do: "checkReplacement" });
  return report.mayLetGo || report.nodeName !== undefined ? undefined : checkAgain(snapshot, report, now);
}

function checkAgain(snapshot: AttemptSnapshot, report: ReplacementReport, now: Now): Decision {
  const inMs = report.atMs + REREAD_MS - now.monotonicMs;
  return inMs <= 0 ? run({ do: "checkReplacement" }) : wait(snapshot, Math.min(inMs, snapshot.remainingMs));
}

type Replacement = NonNullable<AttemptSnapshot["status"]["replacement"]>;

function recordDeletion(
  snapshot: AttemptSnapshot,
  replacement: Replacement,
  report: MachineReport,
  now: Now,
): Decision {
  const { attempt, strategy, status } = snapshot;
  const message = `Machine ${status.machine?.name ?? ""} is deleted: ${replacement.owner.kind} ${replacement.owner.name} will create a new Machine`;
  return transition(snapshot, now, {
    to: "Provisioning",
    step: "MachineDeleted",
    message,
    // The controller that deprovisions the host powers it from now on, so the undo sends no On.
    attempt: { ...attempt, action: "None", deadlineMs: now.epochMs + strategy.timeoutMs },
    conditions: processing("Replacing", message),
    fields: { replacement: { ...replacement, deletedAt: toTime(parseTimeMs(report.deletedAt) ?? now.epochMs) } },
  });
}

function succeed(snapshot: AttemptSnapshot, replacement: Replacement, nodeName: string, now: Now): Decision {
  const message = `node ${nodeName} has taken the place of node ${snapshot.nodeName}`;
  return transition(snapshot, now, {
    to: "Succeeded",
    step: "Replaced",
    message,
    attempt: snapshot.attempt,
    conditions: [
      { type: "NodeRestored", status: "True", reason: "Replaced", message },
      { type: "Processing", status: "False", reason: "Succeeded", message },
      { type: "Succeeded", status: "True", reason: "NodeRestored", message },
      // A health check waits for a Node with the old name. A Node with another name does not end that wait.
      ...(nodeName === snapshot.nodeName ? [nodeRejoined(message)] : []),
    ],
    fields: { replacement: { ...replacement, nodeName } },
  });
}
