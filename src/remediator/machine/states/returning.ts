import { untilNextRead } from "./powering-off.ts";
import type { Node } from "../../../api/core.ts";
import { isReady } from "../node-patches/marks.ts";
import { recordNode } from "./verifying.ts";
import {
  deviceGate,
  failAttempt,
  failAttemptInTurn,
  identityGate,
  move,
  run,
  stopGate,
  wait,
} from "../rules/transitions.ts";
import { isOnDue, isSpent, latenessOf, orderAgeMs, readsOn, withIntent } from "../rules/power-orders.ts";
import type { SentOrder } from "../model/observations.ts";
import type { Now, Snapshot, Walk } from "../model/snapshot.ts";
import type { ConditionChange } from "../model/status.ts";
import { conditionOf, nodeRejoined, processing } from "../model/status.ts";
import { toTime } from "../../../runtime/time.ts";
import type { Decision } from "../model/decision.ts";

/** Orders the host on until it reads On. On is idempotent, so it may be sent again after a restart. */
export function decidePoweringOn(walk: Walk, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  const order = seen.order?.attemptId === attempt.id && seen.order.action === "On" ? seen.order : undefined;
  const spent = isSpent(attempt, "On", order);
  const { last } = seen.power;
  const on = order !== undefined || spent ? readsOn(walk) : undefined;
  if (on !== undefined) return recordOn(walk, on, now.monotonicMs - orderAgeMs(attempt, order, now), now);
  // An order that one device refuses may have turned another one on: all are read before it is repeated.
  const unsent = order === undefined || (order.outcome === "Rejected" && last !== undefined && last.runs !== true);
  const due = isOnDue(attempt, order, now, { runs: last?.runs }) && (unsent || last?.state === "Off");
  if (due && order === undefined) {
    const paused = stopGate(walk, now, "On", attempt, plan.powerOnTimeoutMs);
    if (paused !== undefined) return paused;
  }
  if (walk.remainingMs <= 0) {
    const { reason, message } = seen.device ??
      order?.problem ??
      latenessOf(order) ?? {
        reason: "PowerOnTimeout" as const,
        message: `the host did not read On in time; its BMC says ${last?.raw ?? "nothing"}`,
      };
    return failAttempt(walk, now, reason, message);
  }
  const waiting = deviceGate(walk, now);
  if (waiting !== undefined) return waiting;
  if (due) {
    return (
      stopGate(walk, now, "On", attempt, plan.powerOnTimeoutMs) ??
      identityGate(walk, now, "On") ??
      orderOn(walk, order, now)
    );
  }
  const inMs = untilNextRead(walk, now);
  return inMs <= 0 ? run({ do: "readWhole" }) : wait(walk, inMs);
}

/** Stores the intent to power on, then orders it. The identity has just been verified. */
export function orderOn(walk: Walk, last: SentOrder | undefined, now: Now): Decision {
  const { attempt, state } = walk;
  const again = state.name === "Undoing" || attempt.orders > 0;
  return move(
    walk,
    now,
    {
      to: state.name,
      step: again ? "PoweringOnAgain" : "PoweringOn",
      message: again ? "the host is to be powered on again" : "the host is to be powered on",
      attempt: withIntent(attempt, "On", last, now),
    },
    [{ do: "powerOn", attemptId: attempt.id }],
  );
}

function recordOn(walk: Walk, on: { message: string; warning: boolean }, onOrderedAtMs: number, now: Now): Decision {
  const { attempt, seen, plan, status } = walk;
  const orderedAtMs = Math.round(now.epochMs - (now.monotonicMs - onOrderedAtMs));
  // A host that is on does not wait for good for a record that cannot be written.
  if (!seen.rebootRecorded && (walk.remainingMs > 0 || seen.kube === undefined)) {
    return run({
      do: "recordReboot",
      offConfirmedAtMs: attempt.offConfirmedAtMs ?? orderedAtMs,
      onOrderedAtMs: orderedAtMs,
    });
  }
  const { message } = on;
  return move(walk, now, {
    to: "Rejoining",
    step: "PoweredOn",
    ...on,
    attempt: { ...attempt, sent: true, done: true, deadlineMs: orderedAtMs + plan.timeoutMs },
    conditions: [...processing("Rejoining", message), { type: "PoweredOn", status: "True", reason: "ReadOn", message }],
    fields: { lastRemediated: toTime(orderedAtMs), node: status.node ?? { name: walk.nodeName } },
  });
}

/** Whether a node is in another boot than the one that the attempt ended, and in the Node object that it should be in. */
export function isNewBoot(walk: Pick<Walk, "status">, node: Node): boolean {
  const { uid, bootID } = walk.status.node ?? {};
  const deleted = conditionOf(walk.status, "PermanentNodeDeletionExpected")?.status === "True";
  if (deleted && node.metadata.uid === uid) return false;
  const present = node.status.nodeInfo?.bootID;
  return bootID === undefined || (present !== undefined && present !== bootID);
}

/** The host is on: waits for its kubelet in a new boot, and takes the quarantine off. */
export function decideRejoining(walk: Walk, now: Now): Decision {
  const { seen, node, attempt } = walk;
  if (!seen.devicesClosed) return run({ do: "closeDevices" });
  const named = recordNode(walk, now);
  if (named !== undefined) return named;
  // Only a change of the lease that this process saw after power-on counts: the clocks of nodes may differ from ours.
  const onOrderedAtMs = seen.order?.action === "On" ? seen.order.atMs : -Infinity;
  const renewed = (seen.lease?.renewedAtMs ?? -Infinity) > onOrderedAtMs;
  const rejoined = node !== undefined && isNewBoot(walk, node) && renewed;
  // Another power cycle would not help a node that has rejoined, and that only a failing API keeps from going on.
  if (walk.remainingMs <= 0 && !(rejoined && seen.kube !== undefined)) {
    return failAttemptInTurn(walk, now, "RejoinTimeout", `node ${walk.nodeName} did not rejoin after power-on in time`);
  }
  const restoring = restoreLabels(walk);
  if (restoring !== undefined) return restoring;
  if (!rejoined) return wait(walk, walk.remainingMs);
  if (!seen.quarantineLifted) return run({ do: "liftQuarantine" });
  const message = `node ${walk.nodeName} has rejoined with a new boot`;
  const conditions: ConditionChange[] = [...processing("Restoring", message)];
  if (conditionOf(walk.status, "PermanentNodeDeletionExpected") !== undefined) {
    conditions.push(nodeRejoined(message));
  }
  return move(walk, now, { to: "Restoring", step: "NodeRejoined", message, attempt, conditions });
}

/** Gives the new Node object of a node that we deleted back what the old one had: at once, before it is Ready. */
export function restoreLabels(snapshot: Snapshot): Decision | undefined {
  const { node, status, seen } = snapshot;
  const { backup } = status;
  if (node === undefined || backup === undefined || node.metadata.uid === backup.nodeUID) return undefined;
  return seen.restoredUid === node.metadata.uid ? undefined : run({ do: "restoreNode" });
}

/** The node is back: waits until it is Ready, leaves nothing of ours behind, and only then says so. */
export function decideRestoring(walk: Walk, now: Now): Decision {
  const { attempt, seen, node } = walk;
  // A node that came back by itself, before any power order, is in the boot that it was in.
  const isBack = node !== undefined && isReady(node) && (attempt.action === "None" || isNewBoot(walk, node));
  if (walk.remainingMs <= 0 && !(isBack && seen.kube !== undefined)) {
    const { reason, message } = seen.device ?? {
      reason: "ReadyTimeout" as const,
      message: `node ${walk.nodeName} rejoined, but was not Ready in time`,
    };
    return failAttemptInTurn(walk, now, reason, message);
  }
  const restoring = restoreLabels(walk);
  if (restoring !== undefined) return restoring;
  if (!isBack) return wait(walk, walk.remainingMs);
  if (attempt.bootOverride) {
    const waiting = deviceGate(walk, now);
    if (waiting !== undefined) return waiting;
    if (seen.override !== "None") return run({ do: "setBootOverride", override: "None" });
    const message = "no boot override is left";
    return move(walk, now, {
      to: "Restoring",
      step: "BootOverrideCleared",
      message,
      attempt: { ...attempt, bootOverride: false },
    });
  }
  if (!seen.devicesClosed) return run({ do: "closeDevices" });
  if (!seen.hostReleased) return run({ do: "releaseHost", asItIs: seen.successor?.waiting === true });
  const message = `node ${walk.nodeName} is Ready ${attempt.action === "None" ? "by itself" : "in a new boot"}`;
  return move(walk, now, {
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
