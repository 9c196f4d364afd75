import { isReady } from "../../../nodes/ready.ts";
import { fail, newAttempt, notYetDone } from "../rules/attempts.ts";
import { ownNodeMessage } from "../rules/preconditions.ts";
import { transition, run } from "../rules/transitions.ts";
import { holdsOrder } from "../rules/waits/holds.ts";
import { ensureNotStale, isOldRequest } from "../rules/outage/stale-request.ts";
import { nodeRecord } from "./verifying.ts";
import type { Reason } from "../model/decision/reasons.ts";
import { ownsHost } from "../model/facts/observations.ts";
import type { Now, Snapshot } from "../model/facts/snapshot.ts";
import type { Attempt } from "../model/decision/state.ts";
import { mayHaveTurnedOff } from "../model/decision/state.ts";
import { hasMessage, statusCondition, processing } from "../model/status.ts";
import { CLAIM_RECHECK_MS, FREED_RECHECK_MS } from "../model/decision/timings.ts";
import type { KnownCluster } from "../../../nodes/subject.ts";
import { clusterKey, clusterOf } from "../../../nodes/subject.ts";
import type { Decision } from "../model/decision/decision.ts";
import type { HostFacts } from "../model/facts/host-facts.ts";

/** Looks up the node and its host and claims the host, or reports the obstacle. */
export function decideResolving(snapshot: Snapshot, attempt: Attempt | undefined, now: Now): Decision {
  const { remediation, host, observations, nodeName, admission } = snapshot;
  // A remediation that cannot begin must not occupy a slot.
  const blocked = (reason: Reason, message: string): Decision =>
    admission === undefined ? block(snapshot, attempt, now, reason, message) : run({ do: "withdrawAdmission" });
  if (snapshot.unresolved) return resolve(snapshot, attempt, now);
  const stale = ensureNotStale(snapshot, attempt, now);
  if (stale !== undefined) return stale;
  // Another client may have removed the finalizer since the claim.
  if (!remediation.hasFinalizer && mayOweUndo(snapshot, attempt)) return run({ do: "addFinalizer" });
  if (snapshot.clusterProblem !== undefined)
    return blocked(snapshot.clusterProblem.reason, snapshot.clusterProblem.message);
  if (snapshot.node === undefined && snapshot.status.node === undefined && !wasNodeDeleted(snapshot)) {
    return blocked("NodeNotFound", `there is no node ${nodeName}`);
  }
  if (!host.found) return blocked(host.reason, host.message);
  // A host that its last owner may have left off is claimed even during a pause: this remediation may have to power it
  // on.
  const mayBeOff = attempt !== undefined && mayHaveTurnedOff(attempt);
  const { hold } = snapshot;
  if (hold !== undefined && (!mayBeOff || holdsOrder(hold, "On"))) return blocked(hold.reason, hold.message);
  if (snapshot.runsHere) {
    const waiting = block(snapshot, attempt, now, "OwnNode", ownNodeMessage(snapshot));
    return waiting.status?.phase === "Resolving" ? { ...waiting, effects: [{ do: "handOver" }] } : waiting;
  }
  // The steps after this need an undo, so the finalizer comes first. A remediation that is blocked earlier needs none.
  if (!remediation.hasFinalizer) return run({ do: "addFinalizer" });
  const { claim } = observations;
  // The claim may be on an earlier target of the node.
  if (claim === undefined || (claim.owned && claim.targetUid !== host.facts.ref.uid)) return run({ do: "claimHost" });
  if (!claim.owned) {
    // If the watch shows another owner, it may be older than the answer to the claim, so the next claim waits as well.
    const freed = host.facts.owner?.uid !== claim.by.uid;
    const inMs = claim.atMs + (freed ? FREED_RECHECK_MS : CLAIM_RECHECK_MS) - now.monotonicMs;
    if (inMs <= 0) return run({ do: "claimHost" });
    const { kind, namespace, name } = claim.by;
    return block(snapshot, attempt, now, "HostBusy", `${kind} ${namespace}/${name} owns the host`, inMs);
  }
  if (admission === undefined) return run({ do: "askForAdmission" });
  if (!admission.granted) return block(snapshot, attempt, now, admission.reason, admission.message);
  return beginFirstAttempt(snapshot, attempt, host.facts, now);
}

/**
 * Whether there may be something to undo although the remediation has not begun: a claim on a host, or a host that its
 * last owner has left off.
 */
export function mayOweUndo(
  { remediation, status, observations, host }: Snapshot,
  attempt: Attempt | undefined,
): boolean {
  if (status.target !== undefined || ownsHost(observations)) return true;
  if (attempt !== undefined && attempt.action !== "None") return true;
  return host.found && host.facts.owner?.uid === remediation.uid;
}

/**
 * Stores which node the live Machine refers to, before anything else. A name does not identify a node, because another
 * Machine may get that name later. Nor does a name identify a cluster, so this waits until the API server of the
 * cluster answers with its UID.
 */
function resolve(snapshot: Snapshot, attempt: Attempt | undefined, now: Now): Decision {
  const { observations, subject, clusterProblem } = snapshot;
  const read = observations.subjectMachine;
  if (read === undefined) return run({ do: "resolveSubject" });
  const isOld = now.monotonicMs - read.atMs >= CLAIM_RECHECK_MS;
  if (!read.found) {
    const { reason, message } = read;
    // A deleted Machine never comes back with the same UID.
    if (reason !== "MachineUnreadable") return fail(snapshot, now, reason, message);
    return isOld ? run({ do: "resolveSubject" }) : block(snapshot, attempt, now, reason, message);
  }
  const { metadata, apiVersion, kind, nodeName } = read.machine;
  const { namespace, name, uid } = metadata;
  const { named } = snapshot.remediation;
  if (named !== undefined && named !== nodeName) {
    const message = `the remediation names node ${named}, but Machine ${namespace}/${name} ${nodeName === undefined ? "has no node" : `is node ${nodeName}`}: correct its annotation`;
    return fail(snapshot, now, "SubjectMismatch", message);
  }
  if (clusterProblem !== undefined) {
    return isOld
      ? run({ do: "resolveSubject" })
      : block(snapshot, attempt, now, clusterProblem.reason, clusterProblem.message);
  }
  const cluster = clusterOf(read.machine);
  const node = {
    ...(nodeName !== undefined && { name: nodeName }),
    ...(cluster !== undefined && { cluster: { ...cluster, ...identityOf(snapshot) } }),
  };
  const where = cluster === undefined ? "" : ` of cluster ${clusterKey(cluster)}`;
  return transition(snapshot, now, {
    to: "Resolving",
    step: "SubjectResolved",
    message: `Machine ${namespace}/${name} ${nodeName === undefined ? "has not become a node" : `is node ${nodeName}`}${where}`,
    ...(attempt !== undefined && { attempt }),
    fields: { node, machine: subject.machine ?? { apiVersion, kind, namespace, name, uid } },
  });
}

/** Only the operator decides whether a cluster is the agent's own. An API server could claim anything about itself. */
function identityOf({ clusterUid, isOwnCluster }: Snapshot): Pick<KnownCluster, "uid" | "own"> {
  if (isOwnCluster) return { own: true };
  return clusterUid === undefined ? {} : { uid: clusterUid };
}

/**
 * Whether the Node was deleted after the remediation was created, and before the remediation stored anything about it:
 * its creator recorded that there was a Node. In an old remediation, that record says nothing about the host any more.
 */
function wasNodeDeleted({ node, status, subject, remediation }: Snapshot): boolean {
  const isUnknown = node === undefined && status.node === undefined && subject.nodeName !== undefined;
  return isUnknown && remediation.readyInBoot !== undefined && !isOldRequest(remediation);
}

/** Waits that may last as long as needed. Every other wait in Resolving ends in a failure at its deadline. */
const WAITS_WITHOUT_DEADLINE: readonly Reason[] = [
  "HostBusy",
  "WaitingForTurn",
  "Paused",
  "PauseUnknown",
  "Maintenance",
];

function block(
  snapshot: Snapshot,
  attempt: Attempt | undefined,
  now: Now,
  reason: Reason,
  message: string,
  recheckMs = CLAIM_RECHECK_MS,
): Decision {
  const bounded = !WAITS_WITHOUT_DEADLINE.includes(reason);
  const reported = statusCondition(snapshot.status, "Processing");
  if (reported?.reason === reason && hasMessage(reported, message) && attempt !== undefined) {
    if (bounded && snapshot.remainingMs <= 0) return fail(snapshot, now, reason, message);
    const nextCheckMs = bounded ? Math.min(snapshot.remainingMs, recheckMs) : recheckMs;
    return { notes: [], effects: [], nextCheckMs };
  }
  const timeoutMs = snapshot.strategy.powerOffTimeoutMs;
  const base = attempt ?? newAttempt(snapshot, now, firstKind(snapshot), undefined, timeoutMs);
  // The owner may hand the host over while it is off. Then an undo of this remediation has to power it on.
  const inherits = reason === "HostBusy" && base.action === "None";
  const isNodeKnown = snapshot.node !== undefined || wasNodeDeleted(snapshot);
  return transition(snapshot, now, {
    to: "Resolving",
    step: reason,
    message,
    warning: reason !== "HostBusy" && reason !== "WaitingForTurn",
    attempt: {
      ...base,
      ...(inherits && { action: "Inherited" }),
      deadlineMs: reported?.reason === reason ? base.deadlineMs : now.epochMs + timeoutMs,
    },
    conditions: processing(reason, message),
    // The state of the node now is stored, so that a later comparison shows whether the node came back during the wait.
    ...(isNodeKnown && snapshot.clusterProblem === undefined && { fields: startRecord(snapshot) }),
  });
}

function firstKind(snapshot: Snapshot): Attempt["kind"] {
  return snapshot.strategy.type === "Reprovision" ? "Reprovision" : "Reboot";
}

function beginFirstAttempt(snapshot: Snapshot, attempt: Attempt | undefined, facts: HostFacts, now: Now): Decision {
  const message = `host ${facts.ref.namespace}/${facts.ref.name} is claimed`;
  return transition(snapshot, now, {
    to: "Verifying",
    step: "HostClaimed",
    message,
    attempt: newAttempt(
      snapshot,
      now,
      attempt?.kind ?? firstKind(snapshot),
      attempt,
      snapshot.strategy.powerOffTimeoutMs,
    ),
    conditions: [...processing("Verifying", message), ...notYetDone("NotYet", message)],
    fields: { target: facts.ref, ...startRecord(snapshot) },
  });
}

/**
 * Whether the node has been Ready in its present boot since the remediation was created. What was recorded at the
 * creation, and a live read that allowed the remediation to begin because the node was not Ready, outweigh the
 * watch: the node may have come back in the meantime, for example while no agent ran, also as a new Node. A user who
 * confirms the fence wants it although the node is Ready.
 */
function wasReadyAtStart({ node, remediation, observations }: Snapshot): boolean {
  if (node === undefined || !isReady(node) || observations.request?.isReady === false) return false;
  const { readyInBoot, isConfirmed } = remediation;
  return isConfirmed || readyInBoot === undefined || readyInBoot === node.status.nodeInfo?.bootID;
}

/**
 * The subject as it is when its remediation begins. A remediation that waited for its host or for admission has already
 * stored this.
 */
function startRecord(snapshot: Snapshot): Pick<Snapshot["status"], "node" | "machine"> {
  const { node, status, subject } = snapshot;
  const waited = status.node?.wasReady !== undefined;
  // If the Node was deleted before anything was stored, what the creator recorded is all that is known of it.
  const recorded = waited || node !== undefined ? undefined : snapshot.remediation.nodeAtCreation;
  const bootIDAtStart = waited ? status.node?.bootIDAtStart : (node?.status.nodeInfo?.bootID ?? recorded?.bootID);
  const zone = snapshot.zone ?? recorded?.zone;
  return {
    node: {
      ...(waited || node === undefined ? (status.node ?? { name: snapshot.nodeName }) : nodeRecord(snapshot, node)),
      ...(recorded !== undefined && { uid: recorded.uid }),
      ...(recorded?.bootID !== undefined && { bootID: recorded.bootID }),
      wasReady: status.node?.wasReady ?? wasReadyAtStart(snapshot),
      ...(bootIDAtStart !== undefined && { bootIDAtStart }),
      ...(zone !== undefined && { zone }),
    },
    ...(subject.machine !== undefined && { machine: subject.machine }),
  };
}
