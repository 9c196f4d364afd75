import { untilNextRead } from "./powering-off.ts";
import { orderOn, restoreLabels } from "./returning.ts";
import { CLUSTER_API_GROUP } from "../../../api/cluster-api.ts";
import { holds, identityVerdict, move, run, stopGate, waitBecause } from "../rules/transitions.ts";
import { isOnDue, isSettled, isSpent, isUntouched, readsOn } from "../rules/power-orders.ts";
import type { Reason } from "../model/reasons.ts";
import { restoreInstallation } from "./provisioning-host.ts";
import { awaitDeprovisioning } from "./provisioning-machine.ts";
import type { SentOrder } from "../model/observations.ts";
import { ownsHost } from "../model/observations.ts";
import type { Now, Snapshot, Walk } from "../model/snapshot.ts";
import type { Attempt, Outcome } from "../model/state.ts";
import { mayHaveTurnedOff } from "../model/state.ts";
import { conditionOf, nodeRejoined } from "../model/status.ts";
import { groupOf } from "../../../nodes/subject.ts";
import { IDENTITY_AGE_MAX_MS, SUCCESSOR_AGE_MAX_MS } from "../model/timings.ts";
import type { Decision } from "../model/decision.ts";
import { allowsOn } from "../../../bmc/topology.ts";
import type { IdentityVerdict } from "../../../bmc/topology.ts";
import { holdKey } from "../../../api/metal3.ts";

/**
 * Takes back what was done, in the order in which it is safe: the out-of-service taint off, the boot override cleared, the
 * host on, the quarantine off, the host given up; then the verdict. With a successor waiting the host is handed over as it
 * is: the successor proves and powers it anew.
 */
export function decideUndoing(snapshot: Snapshot, state: { attempt: Attempt; outcome: Outcome }, now: Now): Decision {
  const { seen, host } = snapshot;
  const walk: Walk = { ...snapshot, attempt: state.attempt };
  const isGone = isClusterGone(snapshot);
  if (!seen.taintCleared && !isGone) return run({ do: "untaint" });
  const uninstalled = restoreInstallation(walk, now);
  if (uninstalled !== undefined) return uninstalled;
  const missing = host.found ? undefined : awaitTarget(walk, host.message, now);
  if (missing !== undefined) return missing;
  if (host.found && seen.claim === undefined) return run({ do: "claimHost" });
  const owned = host.found && ownsHost(seen);
  if (!owned && inherits(walk)) {
    // The owner may be about to hand the host over to this remediation: then the On is ours to send.
    if (seen.claim?.owned === false && seen.claim.undoing) return reclaim(walk, now);
  }
  if (owned && !isLeftAsItIs(walk)) {
    const pending = restorePower(walk, now);
    if (pending !== undefined) return pending;
  }
  const rejoining = awaitNode(walk, now);
  if (rejoining !== undefined) return rejoining;
  if (!seen.marksCleared && !isGone) return run({ do: "clearMarks" });
  if (!seen.devicesClosed) return run({ do: "closeDevices" });
  if (owned) {
    const asItIs = seen.successor?.waiting === true || isLeftAsItIs(walk);
    return awaitDeprovisioning(walk, now) ?? run({ do: "releaseHost", asItIs });
  }
  return conclude(walk, state.outcome, now);
}

/** A target that is gone may be made anew for the same host: an undo that owes it something waits for that for a while. */
function awaitTarget(walk: Walk, gone: string, now: Now): Decision | undefined {
  const owes = mayHaveTurnedOff(walk.attempt) || walk.attempt.bootOverride;
  if (!owes || inherits(walk) || walk.remainingMs <= 0) return undefined;
  const message = `${gone}, and the host may be OFF: it is powered on if a FencingTarget with the same identity names node ${walk.nodeName} in time, else ${byHand(walk)}`;
  return waitBecause(walk, now, "TargetGone", message, walk.remainingMs);
}

/** Whether there is nothing left to take back in the node's cluster, since that was deleted. */
function isClusterGone({ away, seen }: Snapshot): boolean {
  return away !== undefined && seen.cluster?.gone === true;
}

/**
 * Whether the host stays off: a Cluster that was deleted here may have been moved to another management cluster, so its node may
 * live on with our out-of-service taint, and must not run then. One that nobody uses any more may.
 */
function isLeftAsItIs(walk: Walk): boolean {
  const { attempt, host, seen } = walk;
  if (!isClusterGone(walk) || seen.taintCleared || attempt.action !== "ForceOff") return false;
  return host.found && host.facts.isInUse;
}

/** What a person has to do for a host that nobody here can power on. */
function byHand(walk: Walk): string {
  const { host, status, remediation } = walk;
  const { target } = status;
  const { uid } = remediation;
  const isLeft = isLeftAsItIs(walk);
  const first = isLeft ? "take the out-of-service taint off its node where that lives on, then " : "";
  if (target?.kind !== "BareMetalHost" || (host.found && !isLeft)) return `${first}power it on by hand`;
  return `${first}take annotation ${holdKey({ uid })} off BareMetalHost ${target.namespace}/${target.name} by hand, for which its operator holds it off`;
}

function inherits(walk: Walk): boolean {
  return walk.attempt.action === "Inherited";
}

const RECLAIM_MS = 1_000;

function reclaim(walk: Walk, now: Now): Decision {
  const { claim } = walk.seen;
  const ageMs = claim?.owned === false ? now.monotonicMs - claim.atMs : RECLAIM_MS;
  return ageMs >= RECLAIM_MS ? run({ do: "claimHost" }) : { notes: [], effects: [], nextCheckMs: RECLAIM_MS - ageMs };
}

/** Clears the boot override and powers the host on. Undefined once that is done, not owed, or given up. */
function restorePower(walk: Walk, now: Now): Decision | undefined {
  const { attempt, seen } = walk;
  const owesOn = mayHaveTurnedOff(attempt);
  if (!owesOn && !attempt.bootOverride) return undefined;
  if (owesOn) {
    const { successor } = seen;
    if (successor === undefined) return run({ do: "checkSuccessor" });
    const isOld = now.monotonicMs - successor.atMs > SUCCESSOR_AGE_MAX_MS;
    if (isOld && walk.siblings.some((sibling) => sibling.waiting)) return run({ do: "checkSuccessor" });
    // A successor orders nothing off while power-offs are held, so the host would stay off for as long.
    if (successor.waiting && !attempt.bootOverride && walk.stop === undefined) return undefined;
  }
  const isHeld = holds(walk.stop, "On");
  const resumed = isHeld ? undefined : stopGate(walk, now, "On", attempt, walk.plan.powerOnTimeoutMs);
  if (resumed !== undefined) return resumed;
  if (hasGivenUp(walk)) return undefined;
  const device = deviceWait(walk, now);
  if (device !== undefined) return device;
  if (attempt.bootOverride) return clearOverride(walk, now);
  return powerOn(walk, now);
}

/** Whether somebody else powers the host by now: it is waited for until he has powered it on, without an order of ours. */
function isTakenBack({ host }: Walk): boolean {
  return host.found && host.facts.takenBack !== undefined;
}

/** Tries of a device that refuses us for good before the host is left as it is: people may have mended it by the second. */
const FINAL_TRIES = 2;

/** A remediation that is being deleted keeps trying, where nobody else would power the host on again. */
function hasGivenUp(walk: Walk): boolean {
  const { device, kube } = walk.seen;
  // No device has refused: an API that fails, and keeps credentials from being read, answers again some time.
  if (device === undefined && kube !== undefined && walk.seen.power.last === undefined) return false;
  if ((walk.remediation.deleting && !isTakenBack(walk)) || holds(walk.stop, "On") || readsOn(walk) !== undefined)
    return false;
  return device?.final === true ? device.failures >= FINAL_TRIES : walk.remainingMs <= 0;
}

function deviceWait(walk: Walk, now: Now): Decision | undefined {
  const { device } = walk.seen;
  const inMs = device === undefined ? 0 : device.retryAtMs - now.monotonicMs;
  return device === undefined || inMs <= 0 ? undefined : waitBecause(walk, now, device.reason, device.message, inMs);
}

function clearOverride(walk: Walk, now: Now): Decision {
  if (walk.seen.override !== "None") return run({ do: "setBootOverride", override: "None" });
  const message = "no boot override is left";
  return move(walk, now, {
    to: "Undoing",
    step: "BootOverrideCleared",
    message,
    attempt: { ...walk.attempt, bootOverride: false },
  });
}

function powerOn(walk: Walk, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  const { last } = seen.power;
  const order = seen.order?.action === "On" ? seen.order : undefined;
  const on = readsOn(walk);
  const isOn = last !== undefined && on !== undefined && isSettled(walk, last.atMs, now);
  if (isOn && !isOnOwed(walk, now)) {
    return move(walk, now, {
      to: "Undoing",
      step: "PoweredOnAgain",
      ...on,
      attempt: {
        ...attempt,
        action: "On",
        actionAtMs: now.epochMs,
        sent: true,
        done: true,
        deadlineMs: now.epochMs + plan.timeoutMs,
      },
      conditions: [{ type: "PoweredOn", status: "True", reason: "ReadOn", message: on.message }],
    });
  }
  const due = isOnDue(attempt, order, now, { unbounded: walk.remediation.deleting, runs: last?.runs });
  if (isOn || (last?.state === "Off" && due && !isTakenBack(walk))) {
    const held = stopGate(walk, now, "On", attempt, plan.powerOnTimeoutMs);
    if (held !== undefined) return held;
    const verdict = identityVerdict(walk, now);
    if (verdict === undefined) return run({ do: "verifyIdentity" });
    if (!verdict.verified && !allowsOn(verdict)) return waitForIdentity(walk, verdict, now);
    return orderOn(walk, order, now);
  }
  // The devices do not say how they are while they are not accepted, which may have changed.
  const { identity } = seen;
  if (last?.state === "Unknown" && (identity === undefined || !allowsOn(identity.verdict))) {
    const verdict = identityVerdict(walk, now);
    if (verdict === undefined) return run({ do: "verifyIdentity" });
    if (!verdict.verified && !allowsOn(verdict)) return waitForIdentity(walk, verdict, now);
  }
  const inMs = untilNextRead(walk, now);
  if (inMs <= 0) return run({ do: "readWhole" });
  if (walk.remainingMs > 0) return { notes: [], effects: [], nextCheckMs: inMs };
  const message = `the host does not read On although it was ordered on, and is ordered on again every few minutes: see to it, and power it on by hand`;
  return waitBecause(walk, now, "PowerOnTimeout", message, inMs);
}

function waitForIdentity(walk: Walk, verdict: Extract<IdentityVerdict, { verified: false }>, now: Now): Decision {
  const reason = verdict.reason === "Mismatch" ? "IdentityMismatch" : "IdentityUnknown";
  return waitBecause(walk, now, reason, verdict.message, IDENTITY_AGE_MAX_MS);
}

/**
 * Whether a host that reads On is ordered on all the same: there are BMCs that show for long what was, and nobody else would
 * power on the host that was ordered off. Where no order may go out now the reading is what there is.
 */
function isOnOwed(walk: Walk, now: Now): boolean {
  const { attempt, seen, stop, remainingMs } = walk;
  const order = seen.order?.attemptId === attempt.id ? seen.order : undefined;
  if (holds(stop, "On") || isTakenBack(walk) || remainingMs <= 0 || isSpent(attempt, "On", order)) return false;
  if (order !== undefined && (order.action === "On" ? wasSent(order) : isUntouched(walk, order))) return false;
  const verdict = identityVerdict(walk, now);
  return verdict === undefined || allowsOn(verdict);
}

/** Whether an order has left this process: its intent, which is stored before, says nothing of that. */
function wasSent({ outcome, problem }: SentOrder): boolean {
  return outcome !== "Rejected" || problem !== undefined;
}

/**
 * Gives a node that this remediation deleted its labels back once it has joined anew, and says so. Undefined where there is
 * nothing to give back, or nobody yet to give it to.
 */
export function restoreDeletedNode(snapshot: Snapshot, now: Now): Decision | undefined {
  if (!isNodeAwaited(snapshot)) return undefined;
  const { node, status } = snapshot;
  if (node === undefined || node.metadata.uid === status.backup?.nodeUID) return undefined;
  const restoring = restoreLabels(snapshot);
  if (restoring !== undefined) return restoring;
  const message = `node ${snapshot.nodeName} has joined again and has its labels back`;
  return move(snapshot, now, {
    to: snapshot.state.name,
    step: "NodeRejoined",
    message,
    conditions: [nodeRejoined(message)],
  });
}

/** Whether this remediation has deleted the Node object and it has not joined anew yet. With its Machine gone it never will. */
export function isNodeAwaited({ status }: Pick<Snapshot, "status">): boolean {
  const announced = conditionOf(status, "PermanentNodeDeletionExpected")?.status === "True";
  return announced && status.backup !== undefined && status.replacement?.deletedAt === undefined;
}

/** A remediation that is being deleted takes the saved labels with it, so it waits for the node for a while. */
function awaitNode(walk: Walk, now: Now): Decision | undefined {
  const restoring = restoreDeletedNode(walk, now);
  if (restoring !== undefined) return restoring;
  const waits = isNodeAwaited(walk) && walk.remediation.deleting && walk.seen.successor?.waiting !== true;
  return waits && walk.remainingMs > 0 ? { notes: [], effects: [], nextCheckMs: walk.remainingMs } : undefined;
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
 * Whether a Machine of Cluster API is left to its owner, which may delete it and have its host installed anew: as before every
 * reprovision the host must have been proven off, unless that is waived.
 */
function isUpToOwner({ remediation, subject, status, plan }: Walk, { verdict, reason }: Outcome): boolean {
  const { machine } = subject;
  if (verdict !== "Failed" || remediation.isRequested || NOT_ITS_HOST.includes(reason)) return false;
  if (machine === undefined || groupOf(machine.apiVersion) !== CLUSTER_API_GROUP) return false;
  const isProven = (status.provenReboots ?? 0) > 0 || status.attempt?.offConfirmedAt !== undefined;
  return status.target !== undefined && (isProven || !plan.requireReboot);
}

function conclude(walk: Walk, outcome: Outcome, now: Now): Decision {
  // Where somebody has taken our finalizer off, and another's keeps the object, it gets its verdict.
  if (outcome.verdict === "Deleted" && walk.remediation.hasFinalizer) return run({ do: "dropFinalizer" });
  const handsOver = isUpToOwner(walk, outcome);
  const isRefused = walk.seen.kube?.refused === true;
  if (handsOver && !walk.seen.handedToOwner && !isRefused) {
    return run({ do: "handToOwner", message: outcome.message });
  }
  const owes = mayHaveTurnedOff(walk.attempt);
  const handedOver = walk.seen.successor?.waiting === true;
  const power = !owes
    ? ""
    : handedOver
      ? "; the host is handed over as it is to the remediation that waits for it"
      : `; the host may still be OFF: ${byHand(walk)}`;
  const boot = walk.attempt.bootOverride
    ? "; its next boot may still be from the network and INSTALL IT AGAIN: clear the boot override by hand before that"
    : "";
  const told = walk.seen.handedToOwner
    ? "; whether to replace the Machine is up to its owner (OwnerRemediated=False)"
    : handsOver
      ? `; the Machine's owner could not be notified (${walk.seen.kube?.message ?? ""})`
      : "";
  const message = `${outcome.message}${power}${boot}${told}`;
  return move(walk, now, {
    to: "Failed",
    step: "Failed",
    message,
    warning: true,
    attempt: walk.attempt,
    conditions: [
      { type: "Processing", status: "False", reason: outcome.reason, message },
      { type: "Succeeded", status: "False", reason: outcome.reason, message },
    ],
  });
}
