import { restoreLabels } from "./rejoining.ts";
import { CLUSTER_API_GROUP } from "../../../api/cluster-api/cluster-api.ts";
import { transition, run, waitBecause } from "../rules/transitions.ts";
import type { Reason } from "../model/decision/reasons.ts";
import { restoreInstallation } from "./provisioning-host.ts";
import { awaitDeprovisioning } from "./provisioning-machine.ts";
import { ownsHost } from "../model/facts/observations.ts";
import type { Now, Snapshot, AttemptSnapshot } from "../model/facts/snapshot.ts";
import type { Attempt, Outcome } from "../model/decision/state.ts";
import { mayHaveTurnedOff } from "../model/decision/state.ts";
import { statusCondition, nodeRejoined } from "../model/status.ts";
import { groupOf } from "../../../nodes/subject.ts";
import type { Decision } from "../model/decision/decision.ts";
import { powerOffAnnotation } from "../../../api/metal3/metal3.ts";
import { restorePower } from "./undoing-power.ts";

/**
 * Undoes what was done, in a safe order: removes the out-of-service taint, clears the boot override, powers the host
 * on, removes the quarantine, releases the host, and then stores the verdict. If a successor waits for the host, the
 * host is handed over with its power as it is: the successor proves it off and powers it on.
 */
export function decideUndoing(snapshot: Snapshot, state: { attempt: Attempt; outcome: Outcome }, now: Now): Decision {
  const { observations, host } = snapshot;
  const withAttempt: AttemptSnapshot = { ...snapshot, attempt: state.attempt };
  const isGone = isClusterGone(snapshot);
  if (!observations.taintCleared && !isGone) return run({ do: "untaint" });
  const uninstalled = restoreInstallation(withAttempt, now);
  if (uninstalled !== undefined) return uninstalled;
  const missing = host.found ? undefined : awaitTarget(withAttempt, host.message, now);
  if (missing !== undefined) return missing;
  if (host.found && observations.claim === undefined) return run({ do: "claimHost" });
  const owned = host.found && ownsHost(observations);
  if (!owned && inherits(withAttempt)) {
    // The owner may be about to hand the host over to this remediation, which then has to power it on.
    if (observations.claim?.owned === false && observations.claim.undoing) return reclaim(withAttempt, now);
  }
  if (owned && !isLeftAsItIs(withAttempt)) {
    const pending = restorePower(withAttempt, now);
    if (pending !== undefined) return pending;
  }
  const rejoining = awaitNode(withAttempt, now);
  if (rejoining !== undefined) return rejoining;
  if (!observations.marksCleared && !isGone) return run({ do: "clearMarks" });
  if (!observations.devicesClosed) return run({ do: "closeDevices" });
  if (owned) {
    const asItIs = observations.successor?.waiting === true || isLeftAsItIs(withAttempt);
    return awaitDeprovisioning(withAttempt, now) ?? run({ do: "releaseHost", asItIs });
  }
  return conclude(withAttempt, state.outcome, now);
}

/**
 * Waits until the deadline for a target that is gone to be created again, if the host may be off or have a boot
 * override. Undefined if there is nothing to wait for.
 */
function awaitTarget(snapshot: AttemptSnapshot, gone: string, now: Now): Decision | undefined {
  const owes = mayHaveTurnedOff(snapshot.attempt) || snapshot.attempt.bootOverride;
  if (!owes || inherits(snapshot) || snapshot.remainingMs <= 0) return undefined;
  const message = `${gone}, and the host may be OFF. The agent powers it on if a FencingTarget with the same identity names node ${snapshot.nodeName} in time; otherwise ${manualSteps(snapshot)}`;
  return waitBecause(snapshot, now, "TargetGone", message, snapshot.remainingMs);
}

/** Whether there is nothing left to undo in the node's cluster because its Cluster was deleted. */
function isClusterGone({ clusterProblem, observations }: Snapshot): boolean {
  return clusterProblem !== undefined && observations.cluster?.gone === true;
}

/**
 * Whether the undo leaves the host off. A Cluster that was deleted here may have been moved to another management
 * cluster. Then its node may still exist with our out-of-service taint, so its host must not run. A host that is not in
 * use may be powered on.
 */
function isLeftAsItIs(snapshot: AttemptSnapshot): boolean {
  const { attempt, host, observations } = snapshot;
  if (!isClusterGone(snapshot) || observations.taintCleared || attempt.action !== "ForceOff") return false;
  return host.found && host.facts.isInUse;
}

/** The steps for the operator if ironfence cannot power the host on. */
function manualSteps(snapshot: AttemptSnapshot): string {
  const { host, status, remediation } = snapshot;
  const { target } = status;
  const { uid } = remediation;
  const isLeft = isLeftAsItIs(snapshot);
  const first = isLeft ? "remove the out-of-service taint from its node if the node still exists, then " : "";
  if (target?.kind !== "BareMetalHost" || (host.found && !isLeft)) return `${first}power it on by hand`;
  return `${first}remove annotation ${powerOffAnnotation({ uid })} from BareMetalHost ${target.namespace}/${target.name} by hand: the Metal3 operator keeps the host off as long as the annotation exists`;
}

function inherits(snapshot: AttemptSnapshot): boolean {
  return snapshot.attempt.action === "Inherited";
}

const RECLAIM_MS = 1_000;

function reclaim(snapshot: AttemptSnapshot, now: Now): Decision {
  const { claim } = snapshot.observations;
  if (claim?.owned !== false) return run({ do: "claimHost" });
  const inMs = claim.atMs + RECLAIM_MS - now.monotonicMs;
  if (inMs <= 0) return run({ do: "claimHost" });
  if (snapshot.remainingMs > 0) return { notes: [], effects: [], nextCheckMs: inMs };
  const { namespace, name } = claim.by;
  const message = `remediation ${namespace}/${name} owns the host and is still undoing; this remediation waits, and powers the host on if the other one does not`;
  return waitBecause(snapshot, now, "HostBusy", message, inMs);
}

/**
 * Restores a Node that this remediation deleted when it has joined again, and reports that. Undefined if there is
 * nothing to restore, or if the Node has not joined yet.
 */
export function restoreDeletedNode(snapshot: Snapshot, now: Now): Decision | undefined {
  if (!isNodeAwaited(snapshot)) return undefined;
  const { node, status } = snapshot;
  if (node === undefined || node.metadata.uid === status.backup?.nodeUID) return undefined;
  const restoring = restoreLabels(snapshot);
  if (restoring !== undefined) return restoring;
  const message = `node ${snapshot.nodeName} has joined again, and its labels, annotations and taints are restored`;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "NodeRejoined",
    message,
    conditions: [nodeRejoined(message)],
  });
}

/**
 * Whether this remediation has deleted the Node object and the node has not joined again yet. A node whose Machine was
 * deleted is not awaited: it never joins again.
 */
export function isNodeAwaited({ status }: Pick<Snapshot, "status">): boolean {
  const announced = statusCondition(status, "PermanentNodeDeletionExpected")?.status === "True";
  return announced && status.backup !== undefined && status.replacement?.deletedAt === undefined;
}

/** Waits for the node, until the deadline, if the remediation is being deleted: its saved labels would be lost. */
function awaitNode(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const restoring = restoreDeletedNode(snapshot, now);
  if (restoring !== undefined) return restoring;
  const waits =
    isNodeAwaited(snapshot) && snapshot.remediation.deleting && snapshot.observations.successor?.waiting !== true;
  return waits && snapshot.remainingMs > 0 ? { notes: [], effects: [], nextCheckMs: snapshot.remainingMs } : undefined;
}

/** Failures after which the fenced host may not be the host of the Machine. */
const NOT_ITS_HOST: readonly string[] = [
  "WrongHost",
  "IdentityMismatch",
  "IdentityUnknown",
  "Ambiguous",
  "HostAttached",
  "HostLost",
  "TargetGone",
  "MachineNotFound",
  "SubjectMismatch",
] satisfies Reason[];

/**
 * Whether a Machine of Cluster API is left to its owner, which may delete it and so have its host installed again. As
 * before every reprovision, the host must have been proven off, unless `requireReboot` is false.
 */
function isUpToOwner(
  { remediation, subject, status, strategy }: AttemptSnapshot,
  { verdict, reason }: Outcome,
): boolean {
  const { machine } = subject;
  if (verdict !== "Failed" || remediation.isRequested || NOT_ITS_HOST.includes(reason)) return false;
  if (machine === undefined || groupOf(machine.apiVersion) !== CLUSTER_API_GROUP) return false;
  const isProven = (status.provenReboots ?? 0) > 0 || status.attempt?.offConfirmedAt !== undefined;
  return status.target !== undefined && (isProven || !strategy.requireReboot);
}

/** What the operator must do because the undo did not, as the end of a message; empty if there is nothing to do. */
function leftToOperator(snapshot: AttemptSnapshot): string {
  const owes = mayHaveTurnedOff(snapshot.attempt);
  const handedOver = snapshot.observations.successor?.waiting === true;
  const power = !owes
    ? ""
    : handedOver
      ? "; the host is handed over as it is to the remediation that waits for it"
      : `; the host may still be OFF: ${manualSteps(snapshot)}`;
  const boot = snapshot.attempt.bootOverride
    ? "; its next boot may still be from the network and INSTALL IT AGAIN: clear the boot override by hand before that"
    : "";
  return `${power}${boot}`;
}

/**
 * Reports what is left to the operator if a remediation is being deleted and its target is gone: the remediation gets
 * no verdict that could say so. Undefined if nothing is left, or if it was already reported.
 */
function reportLeftHost(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { host, status } = snapshot;
  const left = leftToOperator(snapshot);
  if (host.found || inherits(snapshot) || left === "") return undefined;
  const { systemUUID } = status.target ?? {};
  const which = systemUUID === undefined ? "" : ` (system UUID ${systemUUID})`;
  const message = `${host.message}, and the remediation is deleted: ironfence does not power its host${which} on${left}`;
  const reported = waitBecause(snapshot, now, "TargetGone", message);
  return reported.status === undefined ? undefined : reported;
}

function conclude(snapshot: AttemptSnapshot, outcome: Outcome, now: Now): Decision {
  // If our finalizer was removed, and one of another controller keeps the object, the verdict is stored.
  if (outcome.verdict === "Deleted" && snapshot.remediation.hasFinalizer) {
    return reportLeftHost(snapshot, now) ?? run({ do: "dropFinalizer" });
  }
  const handsOver = isUpToOwner(snapshot, outcome);
  const isRefused = snapshot.observations.kube?.refused === true;
  if (handsOver && !snapshot.observations.handedToOwner && !isRefused) {
    return run({ do: "handToOwner", message: outcome.message });
  }
  const ownerText = snapshot.observations.handedToOwner
    ? "; whether to replace the Machine is up to its owner (OwnerRemediated=False)"
    : handsOver
      ? `; the Machine's owner could not be notified (${snapshot.observations.kube?.message ?? ""})`
      : "";
  const message = `${outcome.message}${leftToOperator(snapshot)}${ownerText}`;
  return transition(snapshot, now, {
    to: "Failed",
    step: "Failed",
    message,
    warning: true,
    attempt: snapshot.attempt,
    conditions: [
      { type: "Processing", status: "False", reason: outcome.reason, message },
      { type: "Succeeded", status: "False", reason: outcome.reason, message },
    ],
  });
}
