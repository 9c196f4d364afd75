import { isReady } from "../../../nodes/ready.ts";
import type { Decision } from "../model/decision/decision.ts";
import type { AttemptSnapshot, Now } from "../model/facts/snapshot.ts";
import { failAttemptOnceAdmitted } from "../rules/attempts.ts";
import { ensureDeviceUsable } from "../rules/preconditions.ts";
import { run, transition, wait, waitBecause } from "../rules/transitions.ts";
import { CONTRADICTED_FOR_MS, POLL_SLOW_MS } from "../model/decision/timings.ts";
import { pendingOffMessage, settledAfterMs } from "../rules/orders/power-orders.ts";
import { isNewBoot, restoreLabels } from "./rejoining.ts";

/** The node is back: waits until it is Ready, leaves no mark behind, and only then says so. */
export function decideRestoring(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, node } = snapshot;
  // A node that came back by itself, before any power order, is in the boot that it was in.
  const isBack = node !== undefined && isReady(node) && (attempt.action === "None" || isNewBoot(snapshot, node));
  const pending = isBack ? awaitPendingOff(snapshot, now) : undefined;
  if (pending !== undefined) return pending;
  // The rest of the work for a node that is back may end late, unless its boot override is left and a device fails.
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
 * Waits while a power-off order may still be carried out that has shown no effect, and then for a reading On: a Node
 * may be Ready for a while after its host was powered off. Undefined if there is no such order.
 */
function awaitPendingOff(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations } = snapshot;
  if (attempt.action !== "On" || attempt.done) return undefined;
  // A process that has begun since did not see the last power-off. It came before the intent of the On.
  const lastOffAtMs = observations.unseenOffs?.lastAtMs ?? snapshot.intentSeenAtMs;
  const settledAtMs = lastOffAtMs + settledAfterMs(snapshot);
  const { last } = observations.power;
  if (last?.state === "On" && last.atMs >= settledAtMs) return undefined;
  // No reading On comes from a BMC that does not answer. A kubelet that has renewed its lease since then shows as much.
  // One that goes on saying that the host is not on is wrong if the kubelet still renews its lease a minute later.
  const isSilent = last?.supplied === true || observations.device !== undefined;
  const aliveSinceMs = isSilent ? settledAtMs : settledAtMs + CONTRADICTED_FOR_MS;
  if ((observations.lease?.renewedAtMs ?? -Infinity) >= aliveSinceMs) return undefined;
  const readAtMs = Math.max(settledAtMs, (last?.atMs ?? -Infinity) + POLL_SLOW_MS);
  const inMs = readAtMs - now.monotonicMs;
  if (inMs > 0) return waitBecause(snapshot, now, "PowerOffPending", pendingOffMessage(snapshot.nodeName), inMs);
  return ensureDeviceUsable(snapshot, now) ?? run({ do: "readPower" });
}
