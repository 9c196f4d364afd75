import type { Machine } from "../api/cluster-api.ts";
import { mayBeNodeOf } from "../api/cluster-api.ts";
import type { Node } from "../api/core.ts";
import { isReady, signedTaint } from "./marks.ts";
import {
  deviceGate,
  fail,
  failAttempt,
  identityGate,
  identityVerdict,
  move,
  ownNodeGate,
  ownNodeMessage,
  run,
  stopGate,
  waitBecause,
} from "./moves.ts";
import { withIntent } from "./orders.ts";
import { keepsQuorum } from "./quorum.ts";
import type { Reason } from "./reasons.ts";
import { refuseReprovision, replaceTurnGate } from "./reprovision/refuse.ts";
import { BACKUP_BYTES_MAX, backupBytes, backupOf } from "./restore.ts";
import type { Decision, Now, Snapshot, Walk } from "./snapshot.ts";
import type { Attempt } from "./state.ts";
import { conditionOf, nodeRejoined, processing } from "./status.ts";
import { clusterOf } from "./subject.ts";
import { IDENTITY_AGE_MAX_MS, RENEWAL_TIMEOUT_MS } from "./timings.ts";
import { quorumMessage } from "./turn.ts";

/** Looks at the live node, its lease and the host's identity, and stores the intent to power off. */
export function decideVerifying(walk: Walk, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  if (walk.stop !== undefined && attempt.action === "None") return standBack(walk, walk.stop, now);
  const paused = stopGate(walk, now, attempt, plan.powerOffTimeoutMs);
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
    return `${machineText} has no spec.providerID, so nothing but a name says that ${nodeText} is its own`;
  }
  if (isStrict && node.spec.providerID === undefined) {
    return `${nodeText} has no spec.providerID, so nothing but a name says that it is that of ${machineText}`;
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
  const before = status.node?.bootID;
  const present = node.status.nodeInfo?.bootID;
  // Of a Machine that had no node when its host was powered off no boot is on record: a renewal of the lease tells as much.
  const differs = before === undefined ? hasJoinedSince(walk, now) : present !== undefined && present !== before;
  const rebooted = action !== "None" && differs;
  const recovered = (action === "None" || action === "Inherited") && status.node?.wasReady === false;
  if (!isReady(node) || !(rebooted || recovered)) return undefined;
  if (action !== "None") {
    const { last } = seen.power;
    if (last === undefined) return deviceGate(walk, now) ?? run({ do: "readPower" });
    if (last.state !== "On") return undefined;
  }
  if (!seen.marksCleared) return run({ do: "clearMarks" });
  const [step, message] = !rebooted
    ? ["Recovered", `node ${nodeName} is Ready again by itself: its host is not powered off`]
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
  });
}

/** Whether a Machine that had no node when its host was powered off has become one whose kubelet lives since the power-on. */
function hasJoinedSince({ subject, status, attempt, seen }: Walk, now: Now): boolean {
  const renewedAtMs = seen.lease?.renewedAtMs;
  if (subject.machine === undefined || status.node?.uid !== undefined || renewedAtMs === undefined) return false;
  const renewedAgoMs = now.monotonicMs - renewedAtMs;
  return attempt.action === "On" && renewedAgoMs < now.epochMs - attempt.actionAtMs - RENEWAL_TIMEOUT_MS;
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
  const { wasReady, zone, cluster } = walk.status.node ?? {};
  if (node === undefined) return walk.status.node ?? { name: walk.nodeName };
  const bootID = node.status.nodeInfo?.bootID;
  return {
    name: node.metadata.name,
    ...(cluster !== undefined && { cluster }),
    uid: node.metadata.uid,
    ...(bootID !== undefined && { bootID }),
    ...(wasReady !== undefined && { wasReady }),
    ...(zone !== undefined && { zone }),
  };
}
