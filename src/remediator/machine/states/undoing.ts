import { untilNextRead } from "./powering-off.ts";
import { orderOn } from "./powering-on.ts";
import { restoreLabels } from "./rejoining.ts";
import { CLUSTER_API_GROUP } from "../../../api/cluster-api/cluster-api.ts";
import { holdsOrder, identityVerdict, transition, run, ensureNotHeld, waitBecause } from "../rules/transitions.ts";
import { isOnDue, isSettled, isSpent, hadNoPowerOff, pendingOffMessage, readsOn } from "../rules/power-orders.ts";
import type { Reason } from "../model/reasons.ts";
import { restoreInstallation } from "./provisioning-host.ts";
import { awaitDeprovisioning } from "./provisioning-machine.ts";
import type { SentOrder } from "../model/observations.ts";
import { ownsHost } from "../model/observations.ts";
import type { Now, Snapshot, AttemptSnapshot } from "../model/snapshot.ts";
import type { Attempt, Outcome } from "../model/state.ts";
import { mayHaveTurnedOff } from "../model/state.ts";
import { conditionOf, nodeRejoined } from "../model/status.ts";
import { groupOf } from "../../../nodes/subject.ts";
import { IDENTITY_AGE_MAX_MS, ON_AWAITED_MS, SUCCESSOR_AGE_MAX_MS } from "../model/timings.ts";
import type { Decision } from "../model/decision.ts";
import { allowsOn } from "../../../bmc/devices/topology.ts";
import type { IdentityVerdict } from "../../../bmc/devices/topology.ts";
import { powerOffAnnotation } from "../../../api/metal3/metal3.ts";

/**
 * Undoes what was done, in the order in which it is safe: the out-of-service taint off, the boot override cleared, the
 * host on, the quarantine off, the host given up; then the verdict. With a successor waiting the host is handed over as
 * it is: the successor proves and powers it again.
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
    // The owner may be about to hand the host over to this remediation: then the On is ours to send.
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
 * A target that is gone may be created again for the same host: an undo that owes it something waits for that for a
 * while.
 */
function awaitTarget(snapshot: AttemptSnapshot, gone: string, now: Now): Decision | undefined {
  const owes = mayHaveTurnedOff(snapshot.attempt) || snapshot.attempt.bootOverride;
  if (!owes || inherits(snapshot) || snapshot.remainingMs <= 0) return undefined;
  const message = `${gone}, and the host may be OFF. The agent powers it on if a FencingTarget with the same identity names node ${snapshot.nodeName} in time; otherwise ${manualSteps(snapshot)}`;
  return waitBecause(snapshot, now, "TargetGone", message, snapshot.remainingMs);
}

/** Whether there is nothing left to take back in the node's cluster, since that was deleted. */
function isClusterGone({ clusterProblem, observations }: Snapshot): boolean {
  return clusterProblem !== undefined && observations.cluster?.gone === true;
}

/**
 * Whether the host stays off. A Cluster that was deleted here may have been moved to another management cluster: its
 * node may still exist with our out-of-service taint, and must not run then. A host that is not in use may be powered
 * on.
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
  const first = isLeft ? "take the out-of-service taint off its node if the node still exists, then " : "";
  if (target?.kind !== "BareMetalHost" || (host.found && !isLeft)) return `${first}power it on by hand`;
  return `${first}remove annotation ${powerOffAnnotation({ uid })} from BareMetalHost ${target.namespace}/${target.name} by hand: while it stands, the Metal3 operator keeps the host off`;
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

/** Clears the boot override and powers the host on. Undefined once that is done, not owed, or given up. */
function restorePower(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations } = snapshot;
  const owesOn = mayHaveTurnedOff(attempt);
  if (!owesOn && !attempt.bootOverride) return undefined;
  if (owesOn) {
    const { successor } = observations;
    if (successor === undefined) return run({ do: "checkSuccessor" });
    const isOld = now.monotonicMs - successor.atMs > SUCCESSOR_AGE_MAX_MS;
    if (isOld && snapshot.siblings.some((sibling) => sibling.waiting)) return run({ do: "checkSuccessor" });
    // A successor orders nothing off while power-offs are held, so the host would stay off for as long.
    if (successor.waiting && !attempt.bootOverride && snapshot.hold === undefined) return undefined;
  }
  const isHeld = holdsOrder(snapshot.hold, "On");
  const resumed = isHeld ? undefined : ensureNotHeld(snapshot, now, "On", attempt, snapshot.strategy.powerOnTimeoutMs);
  if (resumed !== undefined) return resumed;
  if (hasGivenUp(snapshot)) return undefined;
  const device = deviceWait(snapshot, now);
  if (device !== undefined) return device;
  if (attempt.bootOverride) return clearOverride(snapshot, now);
  return powerOn(snapshot, now);
}

/** Whether another party powers the host now: the undo waits until that party has powered it on, and sends no order. */
function isTakenBack({ host }: AttemptSnapshot): boolean {
  return host.found && host.facts.takenBack !== undefined;
}

/**
 * Tries of a device that refuses us permanently before the host is left as it is: the operator may have fixed it before
 * the second.
 */
const FINAL_TRIES = 2;

/**
 * Whether the undo has stopped trying to power the host on. A remediation that is being deleted continues to try,
 * unless another operator powers the host.
 */
function hasGivenUp(snapshot: AttemptSnapshot): boolean {
  const { device, kube } = snapshot.observations;
  // No device has refused: an API that fails, and keeps credentials from being read, answers again some time.
  if (device === undefined && kube !== undefined && snapshot.observations.power.last === undefined) return false;
  if (
    (snapshot.remediation.deleting && !isTakenBack(snapshot)) ||
    holdsOrder(snapshot.hold, "On") ||
    readsOn(snapshot) !== undefined
  )
    return false;
  return device?.final === true ? device.failures >= FINAL_TRIES : snapshot.remainingMs <= 0;
}

function deviceWait(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { device } = snapshot.observations;
  const inMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  return device === undefined || inMs <= 0
    ? undefined
    : waitBecause(snapshot, now, device.reason, device.message, inMs);
}

function clearOverride(snapshot: AttemptSnapshot, now: Now): Decision {
  if (snapshot.observations.override !== "None") return run({ do: "setBootOverride", override: "None" });
  const message = "no boot override is left";
  return transition(snapshot, now, {
    to: "Undoing",
    step: "BootOverrideCleared",
    message,
    attempt: { ...snapshot.attempt, bootOverride: false },
  });
}

function powerOn(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  const { last } = observations.power;
  const order = observations.order?.action === "On" ? observations.order : undefined;
  const on = readsOn(snapshot);
  const isOn = last !== undefined && on !== undefined && isSettled(snapshot, last.atMs, now);
  if (isOn && !isOnOwed(snapshot, now)) {
    return transition(snapshot, now, {
      to: "Undoing",
      step: "PoweredOnAgain",
      ...on,
      attempt: {
        ...attempt,
        action: "On",
        actionAtMs: now.epochMs,
        sent: true,
        done: true,
        deadlineMs: now.epochMs + strategy.timeoutMs,
      },
      conditions: [{ type: "PoweredOn", status: "True", reason: "ReadOn", message: on.message }],
    });
  }
  const due = isOnDue(attempt, order, now, { unbounded: snapshot.remediation.deleting, runs: last?.runs });
  if (isOn || (last?.state === "Off" && due && !isTakenBack(snapshot))) {
    const held = ensureNotHeld(snapshot, now, "On", attempt, strategy.powerOnTimeoutMs);
    if (held !== undefined) return held;
    const verdict = identityVerdict(snapshot, now);
    if (verdict === undefined) return run({ do: "verifyIdentity" });
    if (!verdict.verified && !allowsOn(verdict)) return waitForIdentity(snapshot, verdict, now);
    return orderOn(snapshot, order, now);
  }
  // The devices do not say how they are while they are not accepted, which may have changed.
  const { identity } = observations;
  if (last?.state === "Unknown" && (identity === undefined || !allowsOn(identity.verdict))) {
    const verdict = identityVerdict(snapshot, now);
    if (verdict === undefined) return run({ do: "verifyIdentity" });
    if (!verdict.verified && !allowsOn(verdict)) return waitForIdentity(snapshot, verdict, now);
  }
  const inMs = untilNextRead(snapshot, now);
  if (inMs <= 0) return run({ do: "readWhole" });
  if (snapshot.remainingMs > 0 || isOrderYoung(attempt, now)) return { notes: [], effects: [], nextCheckMs: inMs };
  if (on !== undefined)
    return waitBecause(snapshot, now, "PowerOffPending", pendingOffMessage(snapshot.nodeName), inMs);
  const message = `the host does not read On although it was ordered on; ironfence repeats the order every few minutes: check the host, and power it on by hand`;
  return waitBecause(snapshot, now, "PowerOnTimeout", message, inMs);
}

/** Whether the host may simply not have carried out an On yet that a late device let out only after the deadline. */
function isOrderYoung({ action, actionAtMs }: Attempt, now: Now): boolean {
  return action === "On" && now.epochMs - actionAtMs < ON_AWAITED_MS;
}

function waitForIdentity(
  snapshot: AttemptSnapshot,
  verdict: Extract<IdentityVerdict, { verified: false }>,
  now: Now,
): Decision {
  const reason = verdict.reason === "Mismatch" ? "IdentityMismatch" : "IdentityUnknown";
  return waitBecause(snapshot, now, reason, verdict.message, IDENTITY_AGE_MAX_MS);
}

/**
 * Whether the host is ordered on although it reads On: some BMCs report an old state for a long time, and nothing else
 * would power the host on. False if no order may be sent now: then the reading has to be trusted.
 */
function isOnOwed(snapshot: AttemptSnapshot, now: Now): boolean {
  const { attempt, observations, hold, remainingMs } = snapshot;
  const order = observations.order?.attemptId === attempt.id ? observations.order : undefined;
  if (holdsOrder(hold, "On") || isTakenBack(snapshot) || remainingMs <= 0 || isSpent(attempt, "On", order))
    return false;
  if (order !== undefined && (order.action === "On" ? wasSent(order) : hadNoPowerOff(snapshot, order))) return false;
  const verdict = identityVerdict(snapshot, now);
  return verdict === undefined || allowsOn(verdict);
}

/** Whether an order has left this process: its intent, which is stored before, says nothing of that. */
function wasSent({ outcome, problem }: SentOrder): boolean {
  return outcome !== "Rejected" || problem !== undefined;
}

/**
 * Gives a Node that this remediation deleted its labels back after it has joined again, and reports that. Undefined if
 * there is nothing to give back, or if the Node has not joined yet.
 */
export function restoreDeletedNode(snapshot: Snapshot, now: Now): Decision | undefined {
  if (!isNodeAwaited(snapshot)) return undefined;
  const { node, status } = snapshot;
  if (node === undefined || node.metadata.uid === status.backup?.nodeUID) return undefined;
  const restoring = restoreLabels(snapshot);
  if (restoring !== undefined) return restoring;
  const message = `node ${snapshot.nodeName} has joined again and has its labels back`;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "NodeRejoined",
    message,
    conditions: [nodeRejoined(message)],
  });
}

/**
 * Whether this remediation has deleted the Node object and it has not joined again yet. With its Machine gone it never
 * will.
 */
export function isNodeAwaited({ status }: Pick<Snapshot, "status">): boolean {
  const announced = conditionOf(status, "PermanentNodeDeletionExpected")?.status === "True";
  return announced && status.backup !== undefined && status.replacement?.deletedAt === undefined;
}

/** A remediation that is being deleted takes the saved labels with it, so it waits for the node for a while. */
function awaitNode(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const restoring = restoreDeletedNode(snapshot, now);
  if (restoring !== undefined) return restoring;
  const waits =
    isNodeAwaited(snapshot) && snapshot.remediation.deleting && snapshot.observations.successor?.waiting !== true;
  return waits && snapshot.remainingMs > 0 ? { notes: [], effects: [], nextCheckMs: snapshot.remainingMs } : undefined;
}

/** What was fenced may be another host than the Machine's. */
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
 * Whether a Machine of Cluster API is left to its owner, which may delete it and have its host installed again: as
 * before every reprovision the host must have been proven off, unless that is waived.
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

function conclude(snapshot: AttemptSnapshot, outcome: Outcome, now: Now): Decision {
  // If our finalizer was removed, and one of another controller keeps the object, it gets its verdict.
  if (outcome.verdict === "Deleted" && snapshot.remediation.hasFinalizer) return run({ do: "dropFinalizer" });
  const handsOver = isUpToOwner(snapshot, outcome);
  const isRefused = snapshot.observations.kube?.refused === true;
  if (handsOver && !snapshot.observations.handedToOwner && !isRefused) {
    return run({ do: "handToOwner", message: outcome.message });
  }
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
  const ownerText = snapshot.observations.handedToOwner
    ? "; whether to replace the Machine is up to its owner (OwnerRemediated=False)"
    : handsOver
      ? `; the Machine's owner could not be notified (${snapshot.observations.kube?.message ?? ""})`
      : "";
  const message = `${outcome.message}${power}${boot}${ownerText}`;
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
