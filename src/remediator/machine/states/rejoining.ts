import type { Node } from "../../../api/kubernetes/core.ts";
import type { Decision } from "../model/decision/decision.ts";
import type { AttemptSnapshot, Now, Snapshot } from "../model/facts/snapshot.ts";
import type { ConditionUpdate } from "../model/status.ts";
import { statusCondition, nodeRejoined, processing } from "../model/status.ts";
import { failAttemptOnceAdmitted } from "../rules/attempts.ts";
import { run, transition, wait } from "../rules/transitions.ts";
import { recordNode } from "../rules/outage/node-of-machine.ts";

/**
 * Whether a node is in another boot than the one that the attempt ended, and in the Node object that it should be in.
 */
export function isNewBoot(snapshot: Pick<AttemptSnapshot, "status">, node: Node): boolean {
  const { uid, bootID } = snapshot.status.node ?? {};
  const deleted = statusCondition(snapshot.status, "PermanentNodeDeletionExpected")?.status === "True";
  if (deleted && node.metadata.uid === uid) return false;
  const present = node.status.nodeInfo?.bootID;
  return bootID === undefined || (present !== undefined && present !== bootID);
}

/** The host is on: waits for its kubelet in a new boot, and takes the quarantine off. */
export function decideRejoining(snapshot: AttemptSnapshot, now: Now): Decision {
  const { observations, node, attempt } = snapshot;
  if (!observations.devicesClosed) return run({ do: "closeDevices" });
  const named = recordNode(snapshot, now);
  if (named !== undefined) return named;
  // Only a change of the lease that this process saw after power-on counts: the clocks of nodes may differ from ours.
  const onOrderedAtMs = observations.order?.action === "On" ? observations.order.atMs : -Infinity;
  const renewed = (observations.lease?.renewedAtMs ?? -Infinity) > onOrderedAtMs;
  const rejoined = node !== undefined && isNewBoot(snapshot, node) && renewed;
  // Another power cycle would not help a node that has rejoined, and that only a failing API keeps from going on.
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

/** Gives the new Node object of a node that we deleted back what the old one had: at once, before it is Ready. */
export function restoreLabels(snapshot: Snapshot): Decision | undefined {
  const { node, status, observations } = snapshot;
  const { backup } = status;
  if (node === undefined || backup === undefined || node.metadata.uid === backup.nodeUID) return undefined;
  return observations.restoredUid === node.metadata.uid ? undefined : run({ do: "restoreNode" });
}
