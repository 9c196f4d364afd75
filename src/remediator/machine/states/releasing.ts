import { isDeepStrictEqual } from "node:util";
import { endEarlyRelease, isEarly, rereadLease, storeReturn } from "../rules/outage/early.ts";
import { rereadPower, wrongHost } from "./proven-off.ts";
import { failAttempt } from "../rules/attempts.ts";
import { ensureDeviceUsable, ensureIdentity } from "../rules/preconditions.ts";
import { transition, run } from "../rules/transitions.ts";
import type { Now, AttemptSnapshot } from "../model/facts/snapshot.ts";
import type { ConditionUpdate, StatusStep } from "../model/status.ts";
import { statusCondition, processing } from "../model/status.ts";
import {
  DRAIN_CHECK_MAX_MS,
  DRAIN_CHECK_MIN_MS,
  OFF_CONFIRM_GAP_MS,
  POWER_PROOF_AGE_MAX_MS,
  POWER_REREAD_MS,
  RELEASE_BATCH_MAX_MS,
} from "../model/decision/timings.ts";
import type { Decision } from "../model/decision/decision.ts";

/**
 * Decides in Releasing: releases the workloads of the host while it is proven off, until live reads show that they are
 * gone.
 */
export function decideReleasing(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  const unproven = keepProof(snapshot, now);
  if (unproven !== undefined) return unproven;
  const returned = endEarlyRelease(snapshot, now);
  if (returned !== undefined) return returned;
  const wrong = wrongHost(snapshot, observations.power.provenAtMs ?? now.monotonicMs, now);
  if (wrong !== undefined) return wrong;
  const { drain } = observations;
  const drained = drain?.pods === 0 && drain.attachments === 0;
  if (drained || snapshot.remainingMs <= 0) return endRelease(snapshot, drained, now);
  const reread = rereadLease(snapshot, now);
  if (reread !== undefined) return reread;
  const progress = drainProgress(snapshot);
  if (progress !== undefined) return progress;
  if (strategy.workloadRelease === "OutOfServiceTaint") {
    if (observations.taint?.attemptId !== attempt.id) return run({ do: "taint", attemptId: attempt.id });
  } else {
    const deletion = deleteNode(snapshot, now);
    if (deletion !== undefined) return deletion;
  }
  if (drain !== undefined) {
    const gapMs = Math.min(DRAIN_CHECK_MAX_MS, DRAIN_CHECK_MIN_MS * 2 ** Math.min(drain.checks - 1, 10));
    const inMs = drain.atMs + gapMs - now.monotonicMs;
    // The wait ends before the next reading of the power and before the deadline.
    if (inMs > 0)
      return { notes: [], effects: [], nextCheckMs: Math.min(inMs, untilReread(snapshot, now), snapshot.remainingMs) };
  }
  if (strategy.podRelease === "Eager" && !observations.released) {
    return run({ do: "releasePods", withinMs: Math.min(RELEASE_BATCH_MAX_MS, untilProofEnds(snapshot, now)) });
  }
  return run({ do: "checkDrained" });
}

/**
 * Stores how many pods and volume attachments are left, once for each new count, because a CRD of an older version
 * drops the field and it would otherwise be stored again and again. It is for users: nothing is decided from it.
 */
function drainProgress({ status, attempt, observations }: AttemptSnapshot): Decision | undefined {
  const { drain, podsToRelease } = observations;
  if (drain === undefined || drain.isReported) return undefined;
  const stored = status.drain?.attemptID === attempt.id ? status.drain : undefined;
  const next = {
    attemptID: attempt.id,
    pods: Math.max(stored?.pods ?? 0, podsToRelease, drain.pods),
    attachments: Math.max(stored?.attachments ?? 0, drain.attachments),
    left: drain.pods + drain.attachments,
  };
  if (isDeepStrictEqual(stored, next)) return undefined;
  return { status: { ...status, drain: next }, notes: [], effects: [] };
}

function untilReread(snapshot: AttemptSnapshot, now: Now): number {
  return Math.max(0, (snapshot.observations.power.offAtMs ?? now.monotonicMs) + POWER_REREAD_MS - now.monotonicMs);
}

function untilProofEnds(snapshot: AttemptSnapshot, now: Now): number {
  return (snapshot.observations.power.offAtMs ?? now.monotonicMs) + POWER_PROOF_AGE_MAX_MS - now.monotonicMs;
}

/**
 * Renews the proof in time. If the proof is lost, removes the taint and returns to PoweringOff, where the host is
 * forced off again. Undefined while the host is proven off.
 */
export function keepProof(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { power, device } = snapshot.observations;
  if (power.provenAtMs !== undefined) return rereadPower(snapshot, now);
  const { last } = power;
  // This process has just started to read: a proof needs two readings.
  if (device === undefined && last === undefined) return run({ do: "readPower", withinMs: POWER_PROOF_AGE_MAX_MS });
  if (device === undefined && last?.state === "Off") {
    const inMs = last.atMs + OFF_CONFIRM_GAP_MS - now.monotonicMs;
    if (inMs > 0) return { notes: [], effects: [], nextCheckMs: inMs };
    return run({ do: "readPower", withinMs: POWER_PROOF_AGE_MAX_MS });
  }
  return loseProof(snapshot, now);
}

function loseProof(snapshot: AttemptSnapshot, now: Now): Decision {
  const { observations, attempt, strategy } = snapshot;
  const { last } = observations.power;
  // A BMC that does not answer shows nothing about the host. Any reading other than Off shows that it comes back.
  const isBack = observations.device === undefined && last !== undefined && last.state !== "Off";
  if (isEarly(snapshot) && snapshot.state.name === "Releasing" && isBack) {
    return storeReturn(snapshot, now, `the host is no longer off (its BMC says ${last.raw})`);
  }
  // The strategy is not asked: it may have been edited since the taint was put on.
  if (snapshot.state.name === "Releasing" && !observations.taintCleared) return run({ do: "untaint" });
  const why = observations.device?.message ?? `its BMC says ${observations.power.last?.raw ?? "nothing"}`;
  const message = `the host is no longer proven off (${why}): releases stop, and it is forced off and proven off again`;
  return transition(snapshot, now, {
    to: "PoweringOff",
    step: "PowerOffLost",
    message,
    warning: true,
    attempt: { ...attempt, deadlineMs: now.epochMs + strategy.powerOffTimeoutMs },
    conditions: [
      ...processing("PoweringOff", message),
      { type: "PowerOffConfirmed", status: "False", reason: "PowerOffLost", message },
    ],
  });
}

/** Removes the taint and adds the quarantine taint in one guarded patch. Only then may the host be powered on. */
function endRelease(snapshot: AttemptSnapshot, drained: boolean, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  // If the API fails until the deadline, the host is powered on without the quarantine: its node may get pods too
  // early, but otherwise the host would stay off.
  const isUnmarked = snapshot.remainingMs <= 0 && observations.kube !== undefined && observations.taintCleared;
  if (!observations.swapped && !isUnmarked) return run({ do: "swapMarks", attemptId: attempt.id });
  const left = `${observations.drain?.pods ?? "unknown"} pods, ${observations.drain?.attachments ?? "unknown"} volume attachments`;
  const released: ConditionUpdate = drained
    ? {
        type: "WorkloadsReleased",
        status: "True",
        reason: "Drained",
        message: "no pod and no volume is bound to the node",
      }
    : { type: "WorkloadsReleased", status: "False", reason: "DrainTimeout", message: `still on the node: ${left}` };
  if (attempt.kind === "Reprovision") {
    return transition(snapshot, now, {
      to: "Provisioning",
      step: released.reason,
      message: released.message,
      warning: !drained,
      attempt: { ...attempt, deadlineMs: now.epochMs + strategy.powerOnTimeoutMs },
      conditions: [...processing("Provisioning", released.message), released],
    });
  }
  return beginPowerOn(snapshot, now, released.reason, released.message, [released]);
}

/** Stores the intent to power on. */
export function beginPowerOn(
  snapshot: AttemptSnapshot,
  now: Now,
  step: string,
  message: string,
  conditions: readonly ConditionUpdate[],
  fields: StatusStep["fields"] = {},
): Decision {
  const { attempt, strategy } = snapshot;
  return transition(snapshot, now, {
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
      deadlineMs: now.epochMs + snapshot.earlyForMs + strategy.powerOnTimeoutMs,
    },
    conditions: [...processing("PoweringOn", message), ...conditions],
    fields,
  });
}

/**
 * Sets the next boot of the host to the network, and deletes its Node object so that the node joins again. The host is
 * still proven off.
 */
export function decideNetworkBoot(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations } = snapshot;
  if (snapshot.remainingMs <= 0) {
    const { reason, message } = observations.device ?? {
      reason: "ProvisionTimeout" as const,
      message: "setting the boot override and deleting the node took too long",
    };
    return failAttempt(snapshot, now, reason, message);
  }
  const waiting = ensureDeviceUsable(snapshot, now);
  if (waiting !== undefined) return waiting;
  const unproven = keepProof(snapshot, now);
  if (unproven !== undefined) return unproven;
  if (observations.override !== "NetworkOnce") {
    const unverified = ensureIdentity(snapshot, now);
    if (unverified !== undefined) return unverified;
    // The outlets may also feed the BMC: then the BMC gets power only together with the host.
    const { last } = observations.power;
    if (last?.bySupply === true && last.failed !== undefined) {
      const why = "the host is off by its outlets, and no BMC answers: the next boot cannot be set to the network";
      return failAttempt(snapshot, now, "BMCUnreachable", why);
    }
    if (attempt.bootOverride) return run({ do: "setBootOverride", override: "NetworkOnce" });
    const message = "the agent is about to set the next boot to the network";
    return transition(snapshot, now, {
      to: "Provisioning",
      step: "BootOverride",
      message,
      attempt: { ...attempt, bootOverride: true },
    });
  }
  const deletion = deleteNode(snapshot, now);
  if (deletion !== undefined) return deletion;
  return beginPowerOn(snapshot, now, "Provisioned", "the next boot is from the network", []);
}

/**
 * Saves the node's labels, annotations, taints and cordon, announces the deletion, and deletes the Node object that was
 * saved. Without the announcement, the health check would consider the remediation finished. Undefined if that object
 * is gone.
 */
export function deleteNode(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { observations, status, node } = snapshot;
  const uid = status.node?.uid;
  if (observations.nodeDeleted || uid === undefined || (node !== undefined && node.metadata.uid !== uid))
    return undefined;
  if (observations.backup === undefined) return run({ do: "backupNode" });
  const announced = statusCondition(status, "PermanentNodeDeletionExpected")?.status === "True";
  // The comparison is deep because the API server may return the keys in another order.
  if (announced && isDeepStrictEqual(status.backup, observations.backup.status)) return run({ do: "deleteNode" });
  const message = `node ${snapshot.nodeName} is saved and will be deleted, so that it joins again`;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "NodeDeletionExpected",
    message,
    attempt: snapshot.attempt,
    conditions: [{ type: "PermanentNodeDeletionExpected", status: "True", reason: "NodeDeletionExpected", message }],
    fields: { backup: observations.backup.status },
  });
}
