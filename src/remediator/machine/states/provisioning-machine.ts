import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import { keepProof } from "./releasing.ts";
import { deviceGate, fail, failAttempt, move, run, wait } from "../rules/transitions.ts";
import type { Now, Walk } from "../model/snapshot.ts";
import { conditionOf, nodeRejoined, processing } from "../model/status.ts";
import type { MachineLook, ReplacementLook } from "../model/reprovision.ts";
import { isFresh, LOOK_AGAIN_MS } from "../model/reprovision.ts";
import { leaveToOwner } from "../rules/reprovision-checks.ts";
import type { Decision } from "../model/decision.ts";

/** The host is still proven off: announces that the Machine will be deleted, then deletes it. */
export function decideMachineDeletion(walk: Walk, now: Now): Decision {
  const { seen, status } = walk;
  if (walk.remainingMs <= 0) {
    const { reason, message } = seen.device ?? {
      reason: "ProvisionTimeout" as const,
      message: "the Machine could not be deleted in time",
    };
    return failAttempt(walk, now, reason, message);
  }
  const waiting = deviceGate(walk, now) ?? keepProof(walk, now);
  if (waiting !== undefined) return waiting;
  const look = seen.machine;
  if (!isFresh(look, now.monotonicMs)) return run({ do: "examineMachine" });
  const left = leaveToOwner(walk, look, false, now);
  if (left !== undefined || look.owner === undefined) return left ?? run({ do: "examineMachine" });
  const announced = conditionOf(status, "PermanentNodeDeletionExpected")?.status === "True";
  if (announced && status.replacement?.owner.uid === look.owner.uid) return run({ do: "deleteMachine" });
  const message = `Machine ${status.machine?.name ?? ""} will be deleted, so that ${look.owner.kind} ${look.owner.name} makes another one`;
  return move(walk, now, {
    to: "Provisioning",
    step: "MachineDeletionExpected",
    message,
    attempt: walk.attempt,
    conditions: [{ type: "PermanentNodeDeletionExpected", status: "True", reason: "MachineDeletionExpected", message }],
    fields: { replacement: { owner: look.owner } },
  });
}

/**
 * The Machine may have been deleted, which is recorded before all else. Undefined where it is, or the Machine is there: then it
 * is yet to be deleted.
 */
export function recordIfDeleted(walk: Walk, now: Now): Decision | undefined {
  const { replacement } = walk.status;
  if (replacement === undefined || replacement.deletedAt !== undefined) return undefined;
  const { machine } = walk.seen;
  if (machine === undefined) return run({ do: "examineMachine" });
  return machine.state === "Present" ? undefined : recordDeletion(walk, replacement, machine, now);
}

/**
 * The Machine may have been deleted: from then on the host belongs to whoever deprovisions it, so it is neither looked at nor
 * powered any more. Waits for the Node that takes the place. Undefined while the Machine is there: then it is yet to be deleted.
 */
export function decideReplacement(walk: Walk, now: Now): Decision | undefined {
  const { seen, status } = walk;
  const { replacement } = status;
  if (replacement?.deletedAt === undefined) return recordIfDeleted(walk, now);
  const look = seen.replacement;
  if (look === undefined) return run({ do: "checkReplacement" });
  const isOver = walk.remainingMs <= 0;
  // What held the host off goes once its deprovisioning has begun: with it gone earlier, the old system would come up again.
  if (look.mayLetGo || look.nodeName !== undefined || isOver) {
    if (!seen.devicesClosed) return run({ do: "closeDevices" });
    if (!seen.hostReleased) return run({ do: "releaseHost", asItIs: seen.successor?.waiting === true });
  }
  if (look.nodeName !== undefined) return succeed(walk, replacement, look.nodeName, now);
  if (isOver) {
    const { kind, name } = replacement.owner;
    const message = `Machine ${status.machine?.name ?? ""} was deleted, but no other one of ${kind} ${name} has become a Ready node in time`;
    return fail(walk, now, "ReplacementTimeout", message);
  }
  return lookAgain(walk, look, now);
}

/**
 * For an undo after the Machine was deleted: keeps what holds the host off until its deprovisioning has begun, for as long as the
 * undo may take. Undefined where the host may be let go.
 */
export function awaitDeprovisioning(walk: Walk, now: Now): Decision | undefined {
  if (walk.status.replacement?.deletedAt === undefined || walk.remainingMs <= 0) return undefined;
  const look = walk.seen.replacement;
  if (look === undefined) return run({ do: "checkReplacement" });
  return look.mayLetGo || look.nodeName !== undefined ? undefined : lookAgain(walk, look, now);
}

function lookAgain(walk: Walk, look: ReplacementLook, now: Now): Decision {
  const inMs = look.atMs + LOOK_AGAIN_MS - now.monotonicMs;
  return inMs <= 0 ? run({ do: "checkReplacement" }) : wait(walk, Math.min(inMs, walk.remainingMs));
}

type Replacement = NonNullable<Walk["status"]["replacement"]>;

function recordDeletion(walk: Walk, replacement: Replacement, look: MachineLook, now: Now): Decision {
  const { attempt, plan, status } = walk;
  const message = `Machine ${status.machine?.name ?? ""} is deleted: ${replacement.owner.kind} ${replacement.owner.name} is to make another one`;
  return move(walk, now, {
    to: "Provisioning",
    step: "MachineDeleted",
    message,
    // Whoever deprovisions the host powers it from now on: it is owed no On.
    attempt: { ...attempt, action: "None", deadlineMs: now.epochMs + plan.timeoutMs },
    conditions: processing("Replacing", message),
    fields: { replacement: { ...replacement, deletedAt: toTime(parseTimeMs(look.deletedAt) ?? now.epochMs) } },
  });
}

function succeed(walk: Walk, replacement: Replacement, nodeName: string, now: Now): Decision {
  const message = `node ${nodeName} has taken the place of node ${walk.nodeName}`;
  return move(walk, now, {
    to: "Succeeded",
    step: "Replaced",
    message,
    attempt: walk.attempt,
    conditions: [
      { type: "NodeRestored", status: "True", reason: "Replaced", message },
      { type: "Processing", status: "False", reason: "Succeeded", message },
      { type: "Succeeded", status: "True", reason: "NodeRestored", message },
      // A Node of another name never comes back: who waits for the old one is told nothing else.
      ...(nodeName === walk.nodeName ? [nodeRejoined(message)] : []),
    ],
    fields: { replacement: { ...replacement, nodeName } },
  });
}
