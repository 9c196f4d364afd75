import type { Node } from "../../../api/kubernetes/core.ts";
import { isReady } from "../../../nodes/ready.ts";
import { signedTaint } from "../node-patches/marks.ts";
import { fail, failAttempt } from "../rules/attempts.ts";
import {
  ensureDeviceUsable,
  ensureIdentity,
  freshIdentityCheck,
  ensureNotOwnNode,
  ownNodeMessage,
} from "../rules/preconditions.ts";
import { transition, run, waitBecause } from "../rules/transitions.ts";
import { holdsOrder, pauseUnknown, ensureNotHeld, unreadPauseWaitMs } from "../rules/waits/holds.ts";
import { withIntent } from "../rules/orders/power-orders.ts";
import type { Reason } from "../model/decision/reasons.ts";
import { refuseReprovision, ensureReplacementAdmitted } from "../rules/admission/reprovision-checks.ts";
import { BACKUP_BYTES_MAX, backupBytes, backupOf } from "../node-patches/node-backup.ts";
import type { Now, Snapshot, AttemptSnapshot } from "../model/facts/snapshot.ts";
import { mayHaveTurnedOff } from "../model/decision/state.ts";
import { processing } from "../model/status.ts";
import { CLAIM_RECHECK_MS, IDENTITY_AGE_MAX_MS } from "../model/decision/timings.ts";
import { keepsQuorum, quorumMessage } from "../rules/admission/quorum.ts";
import type { Hold } from "../model/facts/hold.ts";
import type { Decision } from "../model/decision/decision.ts";
import { endIfBack, endWhileHeld } from "../rules/outage/outage-over.ts";
import { awaitDump, orderDump, recordNmi } from "../rules/diagnosis/diagnostics.ts";
import { ensureStillOff } from "../rules/outage/early.ts";
import { checkMachine } from "../rules/outage/node-of-machine.ts";

/** Checks the live node, its lease and the identity of the host, and stores the intent to power off. */
export function decideVerifying(snapshot: AttemptSnapshot, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  if (snapshot.hold !== undefined && attempt.action === "None") {
    return recordNmi(snapshot, now) ?? giveUpSlot(snapshot, snapshot.hold, now);
  }
  const ended = endWhileHeld(snapshot, now);
  if (ended !== undefined) return ended;
  const owed = snapshot.hold === undefined ? undefined : powerOnMeanwhile(snapshot, snapshot.hold, now);
  if (owed !== undefined) return owed;
  const paused = ensureNotHeld(snapshot, now, "ForceOff", attempt, strategy.powerOffTimeoutMs);
  if (paused !== undefined) return paused;
  const queued = ensureReplacementAdmitted(snapshot, now);
  if (queued !== undefined) return queued;
  if (snapshot.remainingMs <= 0) {
    const { reason, message } = whyNotVerified(snapshot);
    return failAttempt(snapshot, now, reason, message);
  }
  const dumping = awaitDump(snapshot, now);
  if (dumping !== undefined) return dumping;
  const node = observations.examined?.node;
  const mismatched = checkMachine(snapshot, now);
  if (mismatched !== undefined) return mismatched;
  const back = node === undefined ? undefined : endIfBack(snapshot, node, attempt.action, now);
  if (back !== undefined) return back;
  const disputed = ensureUndisputed(snapshot, now);
  if (disputed !== undefined) return disputed;
  const runsHere = ensureNotOwnNode(snapshot, now);
  if (runsHere !== undefined) return runsHere;
  const reprovisions = observations.examined !== undefined && attempt.kind === "Reprovision";
  const refused = reprovisions ? refuseReprovision(snapshot, node, now) : undefined;
  if (refused !== undefined) return refused;
  const waiting = ensureDeviceUsable(snapshot, now);
  if (waiting !== undefined) return waiting;
  // The facts about the node must be as fresh as the identity: the node may have rebooted or come back while its BMC
  // did not answer.
  if (observations.examined === undefined || freshIdentityCheck(snapshot, now) === undefined)
    return run({ do: "examine" });
  // A taint that an earlier remediation left must not be on the node while the host is not proven off.
  if (node !== undefined && signedTaint(node) && !observations.marksCleared) return run({ do: "clearMarks" });
  const tooLarge = refuseBackup(snapshot, node, now);
  if (tooLarge !== undefined) return tooLarge;
  const needed = ensureQuorum(snapshot, now);
  if (needed !== undefined) return needed;
  const unverified = ensureIdentity(snapshot, now);
  if (unverified !== undefined) return unverified;
  if (node !== undefined && isReady(node) && !observations.quarantined) {
    return run({ do: "quarantine", attemptId: attempt.id });
  }
  return (
    ensureStillOff(snapshot, now) ??
    orderDump(snapshot, now) ??
    orderOff(snapshot, now, attempt.id, "the agent is about to power the host off")
  );
}

/** A host is powered off only if no other object claims that it belongs to another node. */
export function ensureUndisputed(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const dispute = snapshot.observations.examined?.dispute;
  return dispute === undefined ? undefined : fail(snapshot, now, "Ambiguous", dispute);
}

/**
 * Returns to Resolving and so releases the slot if a hold begins before the first order: the hold may last long. A
 * remediation whose host may be off keeps its slot.
 */
function giveUpSlot(snapshot: AttemptSnapshot, hold: NonNullable<AttemptSnapshot["hold"]>, now: Now): Decision {
  const { attempt, observations, strategy } = snapshot;
  if (!observations.marksCleared) return run({ do: "clearMarks" });
  return transition(snapshot, now, {
    to: "Resolving",
    step: hold.reason,
    message: hold.message,
    warning: true,
    attempt: { ...attempt, deadlineMs: now.epochMs + strategy.powerOffTimeoutMs },
    conditions: processing(hold.reason, hold.message),
  });
}

/**
 * Ends the remediation, and so powers the host on, if power-offs are held and the host reads Off because of an earlier
 * order: the hold may last long, and the host must not stay off because of it. If the stop switch cannot be read, this
 * first waits until the deadline of the state. Undefined if the host cannot be off because of this remediation, or if
 * maintenance holds power-ons as well.
 */
export function powerOnMeanwhile(snapshot: AttemptSnapshot, hold: Hold, now: Now): Decision | undefined {
  const { attempt, observations, strategy } = snapshot;
  if (holdsOrder(hold, "On") || !mayHaveTurnedOff(attempt)) return undefined;
  const begun = pauseUnknown(snapshot, now, hold, attempt, strategy.powerOffTimeoutMs);
  if (begun !== undefined) return begun;
  if (unreadPauseWaitMs(snapshot, hold) !== undefined) return undefined;
  const { last } = observations.power;
  const readInMs = last === undefined ? 0 : last.atMs + CLAIM_RECHECK_MS - now.monotonicMs;
  if (readInMs <= 0) {
    const inMs = (observations.device?.retryAtMs ?? now.monotonicMs) - now.monotonicMs;
    return inMs <= 0 ? run({ do: "readPower" }) : waitBecause(snapshot, now, hold.reason, hold.message, inMs);
  }
  if (last?.state !== "Off") return waitBecause(snapshot, now, hold.reason, hold.message, readInMs);
  const message = `the host is off while power-offs are held (${hold.message}): the agent powers it on`;
  return fail(snapshot, now, hold.reason, message);
}

/**
 * Waits while etcd needs the node, according to the last check of its members. Undefined if it does not need the node.
 */
export function ensureQuorum(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { observations, nodeName, remainingMs } = snapshot;
  if (keepsQuorum(observations.members, nodeName)) return undefined;
  const message = quorumMessage(observations.members, nodeName);
  return waitBecause(snapshot, now, "ControlPlaneQuorum", message, Math.min(remainingMs, IDENTITY_AGE_MAX_MS));
}

function whyNotVerified(snapshot: AttemptSnapshot): { reason: Reason; message: string } {
  const { observations, nodeName } = snapshot;
  if (snapshot.runsHere) return { reason: "OwnNode", message: ownNodeMessage(snapshot) };
  if (!keepsQuorum(observations.members, nodeName)) {
    return { reason: "ControlPlaneQuorum", message: quorumMessage(observations.members, nodeName) };
  }
  const { subjectMachine: machine } = observations;
  if (machine?.found === false) return machine;
  return observations.device ?? { reason: "VerifyTimeout", message: "the host could not be verified in time" };
}

/** Refuses to power off a host whose Node would have to be deleted but is too large to be saved first. */
function refuseBackup(snapshot: AttemptSnapshot, node: Node | undefined, now: Now): Decision | undefined {
  const { strategy, attempt, status, nodeName } = snapshot;
  const deletes = strategy.workloadRelease === "DeleteNode" || attempt.kind === "Reprovision";
  if (!deletes || node === undefined) return undefined;
  const sizeBytes = backupBytes(backupOf(node, status.backup));
  if (sizeBytes <= BACKUP_BYTES_MAX) return undefined;
  const message = `labels, annotations and taints of node ${nodeName} have ${sizeBytes} bytes, and no more than ${BACKUP_BYTES_MAX} can be saved, so the node must not be deleted: remove some of them, or use workloadRelease OutOfServiceTaint`;
  return fail(snapshot, now, "BackupTooLarge", message);
}

/** Stores the intent to power off under `id`, then orders it. The identity has just been verified. */
export function orderOff(snapshot: AttemptSnapshot, now: Now, id: string, message: string): Decision {
  const { attempt, observations, strategy } = snapshot;
  const again = snapshot.state.name === "PoweringOff";
  const last = again && observations.order?.attemptId === attempt.id ? observations.order : undefined;
  const node = observations.examined?.node;
  return transition(
    snapshot,
    now,
    {
      to: "PoweringOff",
      step: again ? "PoweringOffAgain" : "PoweringOff",
      message,
      attempt: {
        ...withIntent(again ? attempt : { ...attempt, orders: 0 }, "ForceOff", last, now),
        id,
        secondTaint: attempt.secondTaint || id !== attempt.id,
        deadlineMs: again ? attempt.deadlineMs : now.epochMs + strategy.powerOffTimeoutMs,
      },
      conditions: [
        ...processing("PoweringOff", message),
        {
          type: "IdentityVerified",
          status: "True",
          reason: "Verified",
          message: observations.identity?.check.message ?? "",
        },
      ],
      fields: { ...targetRecord(snapshot), ...(!again && { node: nodeRecord(snapshot, node) }) },
    },
    [{ do: "forceOff", attemptId: id }],
  );
}

/** The target, with the identity of the host. */
function targetRecord({ host }: AttemptSnapshot): Pick<Snapshot["status"], "target"> {
  return host.found ? { target: { ...host.facts.ref, ...host.facts.identity } } : {};
}

/** The node as it is now, with the fields that the status keeps from the beginning of the remediation. */
export function nodeRecord(snapshot: Snapshot, node: Node | undefined): NonNullable<Snapshot["status"]["node"]> {
  const { wasReady, bootIDAtStart, zone, cluster } = snapshot.status.node ?? {};
  if (node === undefined) return snapshot.status.node ?? { name: snapshot.nodeName };
  const bootID = node.status.nodeInfo?.bootID;
  return {
    name: node.metadata.name,
    ...(cluster !== undefined && { cluster }),
    uid: node.metadata.uid,
    ...(bootID !== undefined && { bootID }),
    ...(bootIDAtStart !== undefined && { bootIDAtStart }),
    ...(wasReady !== undefined && { wasReady }),
    ...(zone !== undefined && { zone }),
  };
}
