import type { Machine } from "../../../api/cluster-api.ts";
import { mayBeNodeOf } from "../../../api/cluster-api.ts";
import type { Node } from "../../../api/core.ts";
import { isReady, signedTaint } from "../node-patches/marks.ts";
import {
  deviceGate,
  fail,
  failAttempt,
  holds,
  identityGate,
  identityVerdict,
  move,
  ownNodeGate,
  ownNodeMessage,
  run,
  stopGate,
  wait,
  waitBecause,
  waitsForReadingMs,
} from "../rules/transitions.ts";
import { isSettled, withIntent } from "../rules/power-orders.ts";
import type { Reason } from "../model/reasons.ts";
import { refuseReprovision, replaceTurnGate } from "../rules/reprovision-checks.ts";
import { BACKUP_BYTES_MAX, backupBytes, backupOf } from "../node-patches/node-backup.ts";
import type { Now, Snapshot, Walk } from "../model/snapshot.ts";
import type { Attempt } from "../model/state.ts";
import { mayHaveTurnedOff } from "../model/state.ts";
import { conditionOf, nodeRejoined, processing } from "../model/status.ts";
import { clusterOf } from "../../../nodes/subject.ts";
import {
  CLAIM_RECHECK_MS,
  IDENTITY_AGE_MAX_MS,
  OFF_CONFIRM_GAP_MS,
  POLL_SLOW_MS,
  RENEWAL_TIMEOUT_MS,
} from "../model/timings.ts";
import { keepsQuorum, quorumMessage } from "../rules/quorum.ts";
import type { Stop } from "../model/hold.ts";
import type { Decision } from "../model/decision.ts";

/** Looks at the live node, its lease and the host's identity, and stores the intent to power off. */
export function decideVerifying(walk: Walk, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  if (walk.stop !== undefined && attempt.action === "None") return standBack(walk, walk.stop, now);
  const ended = endWhileHeld(walk, now);
  if (ended !== undefined) return ended;
  const owed = walk.stop === undefined ? undefined : powerOnMeanwhile(walk, walk.stop, now);
  if (owed !== undefined) return owed;
  const paused = stopGate(walk, now, "ForceOff", attempt, plan.powerOffTimeoutMs);
  if (paused !== undefined) return paused;
  const queued = replaceTurnGate(walk, now);
  if (queued !== undefined) return queued;
  if (walk.remainingMs <= 0) {
    const { reason, message } = whyNotVerified(walk);
    return failAttempt(walk, now, reason, message);
  }
  const node = seen.examined?.node;
  const strayed = checkMachine(walk, now);
  if (strayed !== undefined) return strayed;
  const back = node === undefined ? undefined : endIfBack(walk, node, attempt.action, now);
  if (back !== undefined) return back;
  const disputed = disputeGate(walk, now);
  if (disputed !== undefined) return disputed;
  const runsHere = ownNodeGate(walk, now);
  if (runsHere !== undefined) return runsHere;
  const reprovisions = seen.examined !== undefined && attempt.kind === "Reprovision";
  const refused = reprovisions ? refuseReprovision(walk, node, now) : undefined;
  if (refused !== undefined) return refused;
  const waiting = deviceGate(walk, now);
  if (waiting !== undefined) return waiting;
  // What is known of the node must be as fresh as the identity: it may have rebooted, or come back, while its BMC was away.
  if (seen.examined === undefined || identityVerdict(walk, now) === undefined) return run({ do: "examine" });
  // A taint that an earlier remediation left must not stand on a host of which nothing is proven.
  if (node !== undefined && signedTaint(node) && !seen.marksCleared) return run({ do: "clearMarks" });
  const tooLarge = refuseBackup(walk, node, now);
  if (tooLarge !== undefined) return tooLarge;
  const needed = quorumGate(walk, now);
  if (needed !== undefined) return needed;
  const unverified = identityGate(walk, now);
  if (unverified !== undefined) return unverified;
  if (node !== undefined && isReady(node) && !seen.quarantined) {
    return run({ do: "quarantine", attemptId: attempt.id });
  }
  return orderOff(walk, now, attempt.id, "the host is to be powered off");
}

/** Whose host it is must be beyond dispute before it is powered off. */
export function disputeGate(walk: Walk, now: Now): Decision | undefined {
  const dispute = walk.seen.examined?.dispute;
  return dispute === undefined ? undefined : fail(walk, now, "Ambiguous", dispute);
}

/** What the live Machine says that the record does not: it is gone, the node is another one's, or it has named its node since. */
function checkMachine(walk: Walk, now: Now): Decision | undefined {
  const { subjectMachine: machine } = walk.seen;
  if (machine === undefined) return undefined;
  if (!machine.found) {
    const { reason, message, atMs } = machine;
    if (reason !== "MachineUnreadable") return fail(walk, now, reason, message);
    if (walk.subject.cluster === undefined) return undefined;
    // Nothing says then whose node it is.
    const inMs = atMs + IDENTITY_AGE_MAX_MS - now.monotonicMs;
    if (inMs <= 0) return run({ do: "examine" });
    return waitBecause(walk, now, reason, message, Math.min(walk.remainingMs, inMs));
  }
  const node = walk.seen.examined?.node;
  const stranger = node === undefined ? undefined : whyNotNodeOf(node, machine.machine);
  return stranger === undefined ? recordNode(walk, now) : fail(walk, now, "SubjectMismatch", stranger);
}

/**
 * Why a Node is not proven to be that of the Machine which names it. Cluster API finds a Machine's Node by its providerID, so where
 * either has none, a name is all that connects the two, and names are anybody's. An OKD Machine is of the Node's own cluster, where
 * hosts may have no providerID at all.
 */
function whyNotNodeOf(node: Node, machine: Machine): string | undefined {
  const { namespace, name } = machine.metadata;
  const isStrict = clusterOf(machine) !== undefined;
  const [nodeText, machineText] = [`node ${node.metadata.name}`, `Machine ${namespace}/${name}`];
  if (isStrict && machine.providerID === undefined) {
    return `${machineText} has no spec.providerID, so only a name says that ${nodeText} is its own`;
  }
  if (isStrict && node.spec.providerID === undefined) {
    return `${nodeText} has no spec.providerID, so only a name says that it is that of ${machineText}`;
  }
  if (mayBeNodeOf(node, machine)) return undefined;
  return `${nodeText} has another providerID than ${machineText}: look whether the kubeconfig leads to the Machine's cluster`;
}

/** Takes on record which node a Machine has become that had none; undefined where that is known, or not the case yet. */
export function recordNode(walk: Walk, now: Now): Decision | undefined {
  const { subjectMachine: machine } = walk.seen;
  const name = machine?.found === true ? machine.machine.nodeName : undefined;
  if (walk.subject.nodeName !== undefined || name === undefined) return undefined;
  return move(walk, now, {
    to: walk.state.name,
    step: "NodeNamed",
    message: `the Machine has become node ${name}`,
    attempt: walk.attempt,
    fields: { node: { ...walk.status.node, name } },
  });
}

/**
 * Power orders are stopped, perhaps for good, and none was given yet: the place among the hosts that are remediated at once
 * goes to another. A host that may be off keeps its place.
 */
function standBack(walk: Walk, stop: NonNullable<Walk["stop"]>, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  if (!seen.marksCleared) return run({ do: "clearMarks" });
  return move(walk, now, {
    to: "Resolving",
    step: stop.reason,
    message: stop.message,
    warning: true,
    attempt: { ...attempt, deadlineMs: now.epochMs + plan.powerOffTimeoutMs },
    conditions: processing(stop.reason, stop.message),
  });
}

/**
 * Power-offs are held, perhaps for good, and the host may be off by an earlier order: it is not left so. Where it reads Off the
 * remediation is undone; where nobody is known to have paused, only once the state is out of time. Undefined where it does not, or
 * no order at all may be sent.
 */
export function powerOnMeanwhile(walk: Walk, stop: Stop, now: Now): Decision | undefined {
  const { attempt, seen } = walk;
  if (holds(stop, "On") || !mayHaveTurnedOff(attempt)) return undefined;
  if (waitsForReadingMs(walk, stop) !== undefined) return undefined;
  const { last } = seen.power;
  const readInMs = last === undefined ? 0 : last.atMs + CLAIM_RECHECK_MS - now.monotonicMs;
  if (readInMs <= 0) {
    const inMs = (seen.device?.retryAtMs ?? now.monotonicMs) - now.monotonicMs;
    return inMs <= 0 ? run({ do: "readPower" }) : waitBecause(walk, now, stop.reason, stop.message, inMs);
  }
  if (last?.state !== "Off") return waitBecause(walk, now, stop.reason, stop.message, readInMs);
  const message = `the host is off, and is not to stay so for as long as power-offs are held (${stop.message}): it is powered on`;
  return fail(walk, now, stop.reason, message);
}

/** Waits while etcd needs the node, by its members as they were looked at last. Undefined where it does not. */
export function quorumGate(walk: Walk, now: Now): Decision | undefined {
  const { seen, nodeName, remainingMs } = walk;
  if (keepsQuorum(seen.members, nodeName)) return undefined;
  const message = quorumMessage(seen.members, nodeName);
  return waitBecause(walk, now, "ControlPlaneQuorum", message, Math.min(remainingMs, IDENTITY_AGE_MAX_MS));
}

function whyNotVerified(walk: Walk): { reason: Reason; message: string } {
  const { seen, nodeName } = walk;
  if (walk.runsHere) return { reason: "OwnNode", message: ownNodeMessage(walk) };
  if (!keepsQuorum(seen.members, nodeName)) {
    return { reason: "ControlPlaneQuorum", message: quorumMessage(seen.members, nodeName) };
  }
  const { subjectMachine: machine } = seen;
  if (machine?.found === false) return machine;
  return seen.device ?? { reason: "VerifyTimeout", message: "the host could not be verified in time" };
}

/**
 * A healthy host must not be powered off for an outage that is over. It is over where the node is Ready
 * - in another boot than the one on record: the power cycle of this remediation, or of the one whose host it waited for, has
 *   brought it back; or
 * - and was not when the remediation began, and no power order of it can have taken effect yet: it has come back by itself.
 * After a power order the host must read On, too: what a Node says may be older than that.
 *
 * @param action the last power order that may have taken effect.
 */
export function endIfBack(walk: Walk, node: Node, action: Attempt["action"], now: Now): Decision | undefined {
  const { nodeName, seen, attempt, status } = walk;
  const rebooted = action !== "None" && (isRebooted(walk, node) || hasJoinedSince(walk, now));
  const recovered = (action === "None" || action === "Inherited") && status.node?.wasReady === false;
  if (!isReady(node) || !(rebooted || recovered)) return undefined;
  if (action !== "None") {
    const power = lookIfOn(walk, now);
    if (power === "Off") return undefined;
    if (power !== "On") return power;
  }
  if (!seen.marksCleared) return run({ do: "clearMarks" });
  const [step, message] = !rebooted
    ? ["Recovered", `node ${nodeName} is Ready again by itself: its host is not powered off`]
    : walk.state.name === "PoweringOff"
      ? ["BroughtBack", `node ${nodeName} is Ready in another boot, and its host On: it is not powered off again`]
      : action === "Inherited"
        ? ["BroughtBack", `node ${nodeName} was brought back by another remediation while this one waited for its host`]
        : ["BackLate", `node ${nodeName} came back after the time of its attempt`];
  const wasDeleted = conditionOf(status, "PermanentNodeDeletionExpected") !== undefined;
  return move(walk, now, {
    to: "Restoring",
    step,
    message,
    // Whatever comes now, the host is owed no On.
    attempt: {
      ...attempt,
      ...(rebooted ? { action: "On", done: true } : { action: "None" }),
      deadlineMs: now.epochMs + walk.plan.timeoutMs,
    },
    conditions: [...processing("Restoring", message), ...(wasDeleted ? [nodeRejoined(message)] : [])],
    // Only what it was in before the outage is no new boot.
    ...(rebooted && { fields: { node: withBoot(status.node, status.node?.bootIDAtStart) } }),
  });
}

/**
 * Ends the remediation where the live node is back in another boot: it may have been brought back while the agent was away or
 * held, or before its proof was lost. Every further power-off rests on that look.
 */
export function endIfReturned(walk: Walk, now: Now): Decision | undefined {
  const { attempt, seen } = walk;
  if (seen.examined === undefined || identityVerdict(walk, now) === undefined) return run({ do: "examine" });
  const named = recordNode(walk, now);
  if (named !== undefined) return named;
  const { node } = seen.examined;
  return node === undefined ? undefined : endIfBack(walk, node, attempt.action, now);
}

/** The same while power orders are held, where the watched node seems to be back: there is nothing to wait for then. */
export function endWhileHeld(walk: Walk, now: Now): Decision | undefined {
  const { stop, node, seen } = walk;
  const seemsBack = node !== undefined && isReady(node) && isRebooted(walk, node);
  const mayLook = seen.device === undefined || (!seen.device.final && seen.device.retryAtMs <= now.monotonicMs);
  return stop !== undefined && seemsBack && mayLook ? endIfReturned(walk, now) : undefined;
}

type NodeRecord = Snapshot["status"]["node"];

function withBoot(record: NodeRecord, bootID: string | undefined): NodeRecord {
  return record === undefined || bootID === undefined ? record : { ...record, bootID };
}

/** Whether a node is in another boot than the attempt found it in, or than when the remediation began. */
export function isRebooted({ status }: Pick<Walk, "status">, node: Node): boolean {
  const present = node.status.nodeInfo?.bootID;
  const { bootID, bootIDAtStart } = status.node ?? {};
  return present !== undefined && [bootID, bootIDAtStart].some((known) => known !== undefined && known !== present);
}

/**
 * Whether the host of a node that says that it is back is on: what a Node says may be older than that. Off takes two readings in a
 * row, and what tells neither is read again.
 */
function lookIfOn(walk: Walk, now: Now): "On" | "Off" | Decision {
  const { last, offReads } = walk.seen.power;
  const ageMs = last === undefined ? Infinity : now.monotonicMs - last.atMs;
  if (last !== undefined && ageMs <= IDENTITY_AGE_MAX_MS) {
    // A power-off that has had no effect so far may be about to.
    if (last.state === "On" && isSettled(walk, last.atMs, now)) {
      // Of several devices one may have taken the power-off, and stay off beside the one that reads On.
      const isWhole = last.runs !== undefined || walk.attempt.action !== "ForceOff";
      return isWhole ? "On" : run({ do: "readWhole" });
    }
    if (last.runs === true && isSettled(walk, last.atMs, now)) return powerOnAll(walk, last.raw, now);
    if (last.state === "Off" && offReads >= 2) return "Off";
  }
  const inMs = (last?.state === "Off" ? OFF_CONFIRM_GAP_MS : POLL_SLOW_MS) - ageMs;
  return deviceGate(walk, now) ?? (inMs <= 0 ? run({ do: "readPower" }) : wait(walk, inMs));
}

/** The node is back, but a device that its power-off reached is off: nothing but an undo powers that on again. */
function powerOnAll(walk: Walk, raw: string, now: Now): Decision {
  const message = `node ${walk.nodeName} is Ready in another boot, but not all of its host's power devices read On (${raw}): they are powered on`;
  return fail(walk, now, "PowerOnTimeout", message);
}

/** Whether a Machine that had no node when its host was powered off has become one whose kubelet lives since the last order. */
function hasJoinedSince({ subject, status, attempt, seen }: Walk, now: Now): boolean {
  if (subject.machine === undefined || status.node?.uid !== undefined) return false;
  const { renewedAtMs, renewTimeMs } = seen.lease ?? {};
  // Before a further power-off the node's own clock is believed, too: a process that has just begun has seen no renewal.
  const byNodeMs = attempt.action === "ForceOff" && renewTimeMs !== undefined ? now.epochMs - renewTimeMs : Infinity;
  const renewedAgoMs = renewedAtMs === undefined ? byNodeMs : now.monotonicMs - renewedAtMs;
  return renewedAgoMs < now.epochMs - attempt.actionAtMs - RENEWAL_TIMEOUT_MS;
}

/** Refuses to power a host off whose Node would have to be deleted, and cannot be saved before. */
function refuseBackup(walk: Walk, node: Node | undefined, now: Now): Decision | undefined {
  const { plan, attempt, status, nodeName } = walk;
  const deletes = plan.workloadRelease === "DeleteNode" || attempt.kind === "Reprovision";
  if (!deletes || node === undefined) return undefined;
  const sizeBytes = backupBytes(backupOf(node, status.backup));
  if (sizeBytes <= BACKUP_BYTES_MAX) return undefined;
  const message = `labels, annotations and taints of node ${nodeName} have ${sizeBytes} bytes, and no more than ${BACKUP_BYTES_MAX} can be saved, so it must not be deleted: take some off, or use workloadRelease OutOfServiceTaint`;
  return fail(walk, now, "BackupTooLarge", message);
}

/** Stores the intent to power off under `id`, then orders it. The identity has just been verified. */
export function orderOff(walk: Walk, now: Now, id: string, message: string): Decision {
  const { attempt, seen, plan } = walk;
  const again = walk.state.name === "PoweringOff";
  const last = again && seen.order?.attemptId === attempt.id ? seen.order : undefined;
  const node = seen.examined?.node;
  return move(
    walk,
    now,
    {
      to: "PoweringOff",
      step: again ? "PoweringOffAgain" : "PoweringOff",
      message,
      attempt: {
        ...withIntent(again ? attempt : { ...attempt, orders: 0 }, "ForceOff", last, now),
        id,
        secondTaint: attempt.secondTaint || id !== attempt.id,
        deadlineMs: again ? attempt.deadlineMs : now.epochMs + plan.powerOffTimeoutMs,
      },
      conditions: [
        ...processing("PoweringOff", message),
        {
          type: "IdentityVerified",
          status: "True",
          reason: "Verified",
          message: seen.identity?.verdict.message ?? "",
        },
      ],
      fields: { ...targetRecord(walk), ...(!again && { node: nodeRecord(walk, node) }) },
    },
    [{ do: "forceOff", attemptId: id }],
  );
}

/** The target, and who the host is by it. */
function targetRecord({ host }: Walk): Pick<Snapshot["status"], "target"> {
  return host.found ? { target: { ...host.facts.ref, ...host.facts.identity } } : {};
}

/** The node as it is now, with what is on record of it for good. */
export function nodeRecord(walk: Snapshot, node: Node | undefined): NonNullable<Snapshot["status"]["node"]> {
  const { wasReady, bootIDAtStart, zone, cluster } = walk.status.node ?? {};
  if (node === undefined) return walk.status.node ?? { name: walk.nodeName };
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
