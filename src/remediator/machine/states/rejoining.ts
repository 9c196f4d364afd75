import type { Node } from "../../../api/kubernetes/core.ts";
import type { Decision } from "../model/decision/decision.ts";
import type { AttemptSnapshot, Now, Snapshot } from "../model/facts/snapshot.ts";
import type { ConditionUpdate } from "../model/status.ts";
import { statusCondition, nodeRejoined, processing } from "../model/status.ts";
import { failAttemptOnceAdmitted } from "../rules/attempts.ts";
import { run, transition, wait } from "../rules/transitions.ts";
import { recordNode } from "../rules/outage/node-of-machine.ts";

/**
 * Whether a node is in another boot than the one that the attempt ended. If its Node was deleted, it must also have a
 * new Node object.
 */
export function isNewBoot(snapshot: Pick<AttemptSnapshot, "status">, node: Node): boolean {
  const { uid, bootID } = snapshot.status.node ?? {};
  const deleted = statusCondition(snapshot.status, "PermanentNodeDeletionExpected")?.status === "True";
  if (deleted && node.metadata.uid === uid) return false;
  const present = node.status.nodeInfo?.bootID;
  return bootID === undefined || (present !== undefined && present !== bootID);
}

/** Decides after the power-on: waits for the kubelet in a new boot, and removes the quarantine. */
export function decideRejoining(snapshot: AttemptSnapshot, now: Now): Decision {
  const { observations, node, attempt } = snapshot;
  if (!observations.devicesClosed) return run({ do: "closeDevices" });
  const named = recordNode(snapshot, now);
  if (named !== undefined) return named;
  // Only a renewal that this process saw after the power-on counts: the clock of the node may differ from ours.
  const onOrderedAtMs = observations.order?.action === "On" ? observations.order.atMs : -Infinity;
  const renewed = (observations.lease?.renewedAtMs ?? -Infinity) > onOrderedAtMs;
  const rejoined = node !== undefined && isNewBoot(snapshot, node) && renewed;
  // If the node has rejoined and only the API fails, another power cycle would not help.
  if (snapshot.remainingMs <= 0 && !(rejoined && observations.kube !== undefined)) {
    return failAttemptOnceAdmitted(
      snapshot,
      now,
      "RejoinTimeout",
      `node ${snapshot.nodeName} did not rejoin after power-on in time`,
    );
  }
  const restoring = restoreLabels(snapshot);
  if (restoring !== undefined) return restoring;
  if (!rejoined) return wait(snapshot, snapshot.remainingMs);
  if (!observations.quarantineLifted) return run({ do: "liftQuarantine" });
  const message = `node ${snapshot.nodeName} has rejoined with a new boot`;
  const conditions: ConditionUpdate[] = [...processing("Restoring", message)];
  if (statusCondition(snapshot.status, "PermanentNodeDeletionExpected") !== undefined) {
    conditions.push(nodeRejoined(message));
  }
  return transition(snapshot, now, { to: "Restoring", step: "NodeRejoined", message, attempt, conditions });
}

/** Restores the backup of a Node that we deleted on its new Node object, even before the node is Ready. */
export function restoreLabels(snapshot: Snapshot): Decision | undefined {
  const { node, status, observations } = snapshot;
  const { backup } = status;
  if (node === undefined || backup === undefined || node.metadata.uid === backup.nodeUID) return undefined;
  return observations.restoredUid === node.metadata.uid ? undefined : run({ do: "restoreNode" });
}
