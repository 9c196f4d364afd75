import { isReady } from "../../../nodes/ready.ts";
import type { Decision } from "../model/decision/decision.ts";
import type { AttemptSnapshot, Now } from "../model/facts/snapshot.ts";
import { failAttemptOnceAdmitted } from "../rules/attempts.ts";
import { ensureDeviceUsable } from "../rules/preconditions.ts";
import { run, transition, wait, waitBecause } from "../rules/transitions.ts";
import { CONTRADICTED_FOR_MS, POLL_SLOW_MS } from "../model/decision/timings.ts";
import { pendingOffMessage, settledAfterMs } from "../rules/orders/power-orders.ts";
import { isNewBoot, restoreLabels } from "./rejoining.ts";

/** Decides after the node has rejoined: waits until it is Ready, releases the host, and then stores the success. */
export function decideRestoring(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, node } = snapshot;
  // A node that came back by itself before any power order may still be in the same boot.
  const isBack = node !== undefined && isReady(node) && (attempt.action === "None" || isNewBoot(snapshot, node));
  const pending = isBack ? awaitPendingOff(snapshot, now) : undefined;
  if (pending !== undefined) return pending;
  // At the deadline the attempt fails only if the node is not back, or if a boot override is left and a device fails.
  const isHindered = attempt.bootOverride && observations.device !== undefined && observations.kube === undefined;
  if (snapshot.remainingMs <= 0 && (!isBack || isHindered)) {
    const { reason, message } = observations.device ?? {
      reason: "ReadyTimeout" as const,
      message: `node ${snapshot.nodeName} rejoined, but was not Ready in time`,
    };
    return failAttemptOnceAdmitted(snapshot, now, reason, message);
  }
  const restoring = restoreLabels(snapshot);
  if (restoring !== undefined) return restoring;
  if (!isBack) return wait(snapshot, snapshot.remainingMs);
  if (attempt.bootOverride) {
    const waiting = ensureDeviceUsable(snapshot, now);
    if (waiting !== undefined) return waiting;
    if (observations.override !== "None") return run({ do: "setBootOverride", override: "None" });
    const message = "no boot override is left";
    return transition(snapshot, now, {
      to: "Restoring",
      step: "BootOverrideCleared",
      message,
      attempt: { ...attempt, bootOverride: false },
    });
  }
  if (!observations.devicesClosed) return run({ do: "closeDevices" });
  if (!observations.hostReleased) return run({ do: "releaseHost", asItIs: observations.successor?.waiting === true });
  const message = `node ${snapshot.nodeName} is Ready ${attempt.action === "None" ? "by itself" : "in a new boot"}`;
  return transition(snapshot, now, {
    to: "Succeeded",
    step: "Succeeded",
    message,
    attempt,
    conditions: [
      { type: "NodeRestored", status: "True", reason: "Ready", message },
      { type: "Processing", status: "False", reason: "Succeeded", message },
      { type: "Succeeded", status: "True", reason: "NodeRestored", message },
    ],
  });
}

/**
 * Waits while a BMC may still carry out a power-off order that has shown no effect, and then for a reading On: a Node
 * may be Ready for a while after its host was powered off. Undefined if there is no such order.
 */
function awaitPendingOff(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations } = snapshot;
  if (attempt.action !== "On" || attempt.done) return undefined;
  // After a restart, the process does not know when the last power-off was sent. It was before the intent of the On.
  const lastOffAtMs = observations.unseenOffs?.lastAtMs ?? snapshot.intentSeenAtMs;
  const settledAtMs = lastOffAtMs + settledAfterMs(snapshot);
  const { last } = observations.power;
  if (last?.state === "On" && last.atMs >= settledAtMs) return undefined;
  // A renewal of the lease also shows that the host is on: after `settledAtMs` if the BMC does not answer, and a minute
  // later if the BMC answers that the host is not on.
  const isSilent = last?.supplied === true || observations.device !== undefined;
  const aliveSinceMs = isSilent ? settledAtMs : settledAtMs + CONTRADICTED_FOR_MS;
  if ((observations.lease?.renewedAtMs ?? -Infinity) >= aliveSinceMs) return undefined;
  const readAtMs = Math.max(settledAtMs, (last?.atMs ?? -Infinity) + POLL_SLOW_MS);
  const inMs = readAtMs - now.monotonicMs;
  if (inMs > 0) return waitBecause(snapshot, now, "PowerOffPending", pendingOffMessage(snapshot.nodeName), inMs);
  return ensureDeviceUsable(snapshot, now) ?? run({ do: "readPower" });
}
