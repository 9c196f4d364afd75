import { isDeepStrictEqual } from "node:util";
import { rereadPower, wrongHost } from "./powering-off.ts";
import { deviceGate, failAttempt, identityGate, move, run } from "../rules/transitions.ts";
import type { Now, Walk } from "../model/snapshot.ts";
import type { ConditionChange, StatusChange } from "../model/status.ts";
import { conditionOf, processing } from "../model/status.ts";
import {
  DRAIN_CHECK_MAX_MS,
  DRAIN_CHECK_MIN_MS,
  OFF_CONFIRM_GAP_MS,
  POWER_PROOF_AGE_MAX_MS,
  POWER_REREAD_MS,
  RELEASE_BATCH_MAX_MS,
} from "../model/timings.ts";
import type { Decision } from "../model/decision.ts";

/** The host is proven off: frees its workloads for as long as that stays proven, and sees by live looks when they are gone. */
export function decideReleasing(walk: Walk, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  const unproven = keepProof(walk, now);
  if (unproven !== undefined) return unproven;
  const wrong = wrongHost(walk, seen.power.provenAtMs ?? now.monotonicMs, now);
  if (wrong !== undefined) return wrong;
  const { drain } = seen;
  const drained = drain?.pods === 0 && drain.attachments === 0;
  if (drained || walk.remainingMs <= 0) return endRelease(walk, drained, now);
  if (plan.workloadRelease === "OutOfServiceTaint") {
    if (seen.taint?.attemptId !== attempt.id) return run({ do: "taint", attemptId: attempt.id });
  } else {
    const deletion = deleteNode(walk, now);
    if (deletion !== undefined) return deletion;
  }
  if (drain !== undefined) {
    const gapMs = Math.min(DRAIN_CHECK_MAX_MS, DRAIN_CHECK_MIN_MS * 2 ** Math.min(drain.checks - 1, 10));
    const inMs = drain.atMs + gapMs - now.monotonicMs;
    // Never past the next reading of the power, nor past the deadline.
    if (inMs > 0)
      return { notes: [], effects: [], nextCheckMs: Math.min(inMs, untilReread(walk, now), walk.remainingMs) };
  }
  if (plan.podRelease === "Eager" && !seen.released) {
    return run({ do: "releasePods", withinMs: Math.min(RELEASE_BATCH_MAX_MS, untilProofEnds(walk, now)) });
  }
  return run({ do: "checkDrained" });
}

function untilReread(walk: Walk, now: Now): number {
  return Math.max(0, (walk.seen.power.offAtMs ?? now.monotonicMs) + POWER_REREAD_MS - now.monotonicMs);
}

function untilProofEnds(walk: Walk, now: Now): number {
  return (walk.seen.power.offAtMs ?? now.monotonicMs) + POWER_PROOF_AGE_MAX_MS - now.monotonicMs;
}

/**
 * Reads the power again in time. Undefined while the host is proven off; else stops everything: the taint comes off, and
 * the host is forced off and proven anew.
 */
export function keepProof(walk: Walk, now: Now): Decision | undefined {
  const { power, device } = walk.seen;
  if (power.provenAtMs !== undefined) return rereadPower(walk, now);
  const { last } = power;
  // This process has only begun to look: a proof needs two readings.
  if (device === undefined && last === undefined) return run({ do: "readPower", withinMs: POWER_PROOF_AGE_MAX_MS });
  if (device === undefined && last?.state === "Off") {
    const inMs = last.atMs + OFF_CONFIRM_GAP_MS - now.monotonicMs;
    if (inMs > 0) return { notes: [], effects: [], nextCheckMs: inMs };
    return run({ do: "readPower", withinMs: POWER_PROOF_AGE_MAX_MS });
  }
  return loseProof(walk, now);
}

function loseProof(walk: Walk, now: Now): Decision {
  const { seen, attempt, plan } = walk;
  // Whatever the strategy says by now: it may have been edited since the taint was put on.
  if (walk.state.name === "Releasing" && !seen.taintCleared) return run({ do: "untaint" });
  const why = seen.device?.message ?? `its BMC says ${seen.power.last?.raw ?? "nothing"}`;
  const message = `the host is not proven off any more (${why}): releases stop, and it is forced off and proven off again`;
  return move(walk, now, {
    to: "PoweringOff",
    step: "PowerOffLost",
    message,
    warning: true,
    attempt: { ...attempt, deadlineMs: now.epochMs + plan.powerOffTimeoutMs },
    conditions: [
      ...processing("PoweringOff", message),
      { type: "PowerOffConfirmed", status: "False", reason: "PowerOffLost", message },
    ],
  });
}

/** One guarded patch takes the taint off and puts the quarantine on; only then may the host be powered on. */
function endRelease(walk: Walk, drained: boolean, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  // Without the quarantine the node may take pods a little early; without the power it never runs again.
  const isUnmarked = walk.remainingMs <= 0 && seen.kube !== undefined && seen.taintCleared;
  if (!seen.swapped && !isUnmarked) return run({ do: "swapMarks", attemptId: attempt.id });
  const left = `${seen.drain?.pods ?? "unknown"} pods, ${seen.drain?.attachments ?? "unknown"} volume attachments`;
  const released: ConditionChange = drained
    ? {
        type: "WorkloadsReleased",
        status: "True",
        reason: "Drained",
        message: "no pod and no volume is bound to the node",
      }
    : { type: "WorkloadsReleased", status: "False", reason: "DrainTimeout", message: `still on the node: ${left}` };
  if (attempt.kind === "Reprovision") {
    return move(walk, now, {
      to: "Provisioning",
      step: released.reason,
      message: released.message,
      warning: !drained,
      attempt: { ...attempt, deadlineMs: now.epochMs + plan.powerOnTimeoutMs },
      conditions: [...processing("Provisioning", released.message), released],
    });
  }
  return beginPowerOn(walk, now, released.reason, released.message, [released]);
}

/** Stores the intent to power on. */
export function beginPowerOn(
  walk: Walk,
  now: Now,
  step: string,
  message: string,
  conditions: readonly ConditionChange[],
  fields: StatusChange["fields"] = {},
): Decision {
  const { attempt, plan } = walk;
  return move(walk, now, {
    to: "PoweringOn",
    step,
    message,
    warning: step === "DrainTimeout",
    attempt: {
      ...attempt,
      action: "On",
      actionAtMs: now.epochMs,
      orders: 0,
      sent: false,
      done: false,
      deadlineMs: now.epochMs + plan.powerOnTimeoutMs,
    },
    conditions: [...processing("PoweringOn", message), ...conditions],
    fields,
  });
}

/** The host is still proven off: its next boot is set to the network, and its Node object goes, so that it joins anew. */
export function decideNetworkBoot(walk: Walk, now: Now): Decision {
  const { attempt, seen } = walk;
  if (walk.remainingMs <= 0) {
    const { reason, message } = seen.device ?? {
      reason: "ProvisionTimeout" as const,
      message: "the boot override could not be set and the node not be deleted in time",
    };
    return failAttempt(walk, now, reason, message);
  }
  const waiting = deviceGate(walk, now);
  if (waiting !== undefined) return waiting;
  const unproven = keepProof(walk, now);
  if (unproven !== undefined) return unproven;
  if (seen.override !== "NetworkOnce") {
    const unverified = identityGate(walk, now);
    if (unverified !== undefined) return unverified;
    if (attempt.bootOverride) return run({ do: "setBootOverride", override: "NetworkOnce" });
    const message = "the next boot is to be from the network";
    return move(walk, now, {
      to: "Provisioning",
      step: "BootOverride",
      message,
      attempt: { ...attempt, bootOverride: true },
    });
  }
  const deletion = deleteNode(walk, now);
  if (deletion !== undefined) return deletion;
  return beginPowerOn(walk, now, "Provisioned", "the next boot is from the network", []);
}

/**
 * Saves the node's labels, annotations, taints and cordon, announces the deletion (or the health check would take the
 * remediation for done), and deletes the Node object that was saved. Undefined once that object is gone.
 */
export function deleteNode(walk: Walk, now: Now): Decision | undefined {
  const { seen, status, node } = walk;
  const uid = status.node?.uid;
  if (seen.nodeDeleted || uid === undefined || (node !== undefined && node.metadata.uid !== uid)) return undefined;
  if (seen.backup === undefined) return run({ do: "backupNode" });
  const announced = conditionOf(status, "PermanentNodeDeletionExpected")?.status === "True";
  // The API server hands what was stored back with its keys in another order.
  if (announced && isDeepStrictEqual(status.backup, seen.backup.status)) return run({ do: "deleteNode" });
  const message = `node ${walk.nodeName} is saved and will be deleted, so that it joins again`;
  return move(walk, now, {
    to: walk.state.name,
    step: "NodeDeletionExpected",
    message,
    attempt: walk.attempt,
    conditions: [{ type: "PermanentNodeDeletionExpected", status: "True", reason: "NodeDeletionExpected", message }],
    fields: { backup: seen.backup.status },
  });
}
