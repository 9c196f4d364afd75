import { CONTROL_PLANE_ROLES } from "../api/labels.ts";
import type { Node } from "../api/core.ts";
import { isReady, signedTaint } from "./marks.ts";
import {
  deviceGate,
  fail,
  failAttempt,
  identityGate,
  identityVerdict,
  move,
  newAttempt,
  run,
  stopGate,
  untouched,
} from "./moves.ts";
import { withIntent } from "./orders.ts";
import type { Reason } from "./reasons.ts";
import { rebootOfThisOutage } from "./reboot-proof.ts";
import type { Decision, HostFacts, Now, Snapshot, Walk } from "./snapshot.ts";
import type { Attempt } from "./state.ts";
import { conditionOf, processing } from "./status.ts";
import { CLAIM_RECHECK_MS, FREED_RECHECK_MS } from "./timings.ts";

/** Looks the node and its host up and takes the host, or says what is in the way. */
export function decideResolving(snapshot: Snapshot, attempt: Attempt | undefined, now: Now): Decision {
  const { remediation, host, seen, nodeName } = snapshot;
  if (!remediation.hasFinalizer) return run({ do: "addFinalizer" });
  if (snapshot.node === undefined && snapshot.status.node === undefined) {
    return block(snapshot, attempt, now, "NodeNotFound", `there is no node ${nodeName}`);
  }
  if (!host.found) return block(snapshot, attempt, now, host.reason, host.message);
  if (snapshot.stop !== undefined) return block(snapshot, attempt, now, snapshot.stop.reason, snapshot.stop.message);
  const { claim } = seen;
  // Another target may serve the node by now than the one that was claimed.
  if (claim === undefined || (claim.owned && claim.targetUid !== host.facts.ref.uid)) return run({ do: "claimHost" });
  if (!claim.owned) {
    // The watch says that the owner has gone; it may lag behind what the claim was told, hence the pause.
    const freed = host.facts.owner?.uid !== claim.by.uid;
    const inMs = claim.atMs + (freed ? FREED_RECHECK_MS : CLAIM_RECHECK_MS) - now.monotonicMs;
    if (inMs <= 0) return run({ do: "claimHost" });
    const { kind, namespace, name } = claim.by;
    return block(snapshot, attempt, now, "HostBusy", `${kind} ${namespace}/${name} owns the host`, inMs);
  }
  return beginFirstAttempt(snapshot, attempt, host.facts, now);
}

/** What waits for people has a deadline; what waits for another remediation or for the stop switch has not. */
const WAITS_FOR_GOOD: readonly Reason[] = ["HostBusy", "Paused", "Maintenance"];

function block(
  snapshot: Snapshot,
  attempt: Attempt | undefined,
  now: Now,
  reason: Reason,
  message: string,
  recheckMs = CLAIM_RECHECK_MS,
): Decision {
  const bounded = !WAITS_FOR_GOOD.includes(reason);
  const said = conditionOf(snapshot.status, "Processing");
  if (said?.reason === reason && said.message === message && attempt !== undefined) {
    if (bounded && snapshot.remainingMs <= 0) return fail(snapshot, now, reason, message);
    const nextCheckMs = bounded ? snapshot.remainingMs : recheckMs;
    return { notes: [], effects: [], nextCheckMs };
  }
  const timeoutMs = snapshot.plan.powerOffTimeoutMs;
  const base = attempt ?? newAttempt(snapshot, now, firstKind(snapshot), undefined, timeoutMs);
  // Who has waited for a host may be handed one that its last owner left off: an undo then owes it an On.
  const inherits = reason === "HostBusy" && base.action === "None";
  return move(snapshot, now, {
    to: "Resolving",
    step: reason,
    message,
    warning: reason !== "HostBusy",
    attempt: {
      ...base,
      ...(inherits && { action: "Inherited" }),
      deadlineMs: said?.reason === reason ? base.deadlineMs : now.epochMs + timeoutMs,
    },
    conditions: processing(reason, message),
    // The boot in which the node is now: another one later tells that the owner has brought it back.
    ...(inherits && snapshot.node !== undefined && { fields: { node: nodeRecord(snapshot, snapshot.node) } }),
  });
}

function firstKind(snapshot: Snapshot): Attempt["kind"] {
  return snapshot.plan.type === "Reprovision" ? "Reprovision" : "Reboot";
}

function beginFirstAttempt(snapshot: Snapshot, attempt: Attempt | undefined, facts: HostFacts, now: Now): Decision {
  const message = `host ${facts.ref.namespace}/${facts.ref.name} is taken`;
  return move(snapshot, now, {
    to: "Verifying",
    step: "HostClaimed",
    message,
    attempt: newAttempt(snapshot, now, attempt?.kind ?? firstKind(snapshot), attempt, snapshot.plan.powerOffTimeoutMs),
    conditions: [...processing("Verifying", message), ...untouched("NotYet", message)],
    fields: { target: facts.ref, node: snapshot.status.node ?? { name: snapshot.nodeName } },
  });
}

/** Looks at the live node, its lease and the host's identity, and stores the intent to power off. */
export function decideVerifying(walk: Walk, now: Now): Decision {
  const { attempt, seen, plan } = walk;
  const paused = stopGate(walk, now, attempt, plan.powerOffTimeoutMs);
  if (paused !== undefined) return paused;
  if (walk.remainingMs <= 0) {
    const { reason, message } = seen.device ?? {
      reason: "VerifyTimeout" as const,
      message: "the host could not be verified in time",
    };
    return failAttempt(walk, now, reason, message);
  }
  const node = seen.examined?.node;
  const restored = node === undefined ? undefined : endIfBroughtBack(walk, node, now);
  if (restored !== undefined) return restored;
  const reprovisions = seen.examined !== undefined && attempt.kind === "Reprovision";
  const refused = reprovisions ? refuseReprovision(walk, node, now) : undefined;
  if (refused !== undefined) return refused;
  const waiting = deviceGate(walk, now);
  if (waiting !== undefined) return waiting;
  // What is known of the node must be as fresh as the identity: it may have rebooted, or come back, while its BMC was away.
  if (seen.examined === undefined || identityVerdict(walk, now) === undefined) return run({ do: "examine" });
  // A taint that an earlier remediation left must not stand on a host of which nothing is proven.
  if (node !== undefined && signedTaint(node) && !seen.marksCleared) return run({ do: "clearMarks" });
  const unverified = identityGate(walk, now);
  if (unverified !== undefined) return unverified;
  if (node !== undefined && isReady(node) && !seen.quarantined) {
    return run({ do: "quarantine", attemptId: attempt.id });
  }
  return orderOff(walk, now, attempt.id, "the host is to be powered off");
}

/**
 * A remediation that had to wait for the host's owner has nothing left to do where that one has brought the node back: a
 * healthy host must not be powered off for an outage that is over.
 */
function endIfBroughtBack(walk: Walk, node: Node, now: Now): Decision | undefined {
  const before = walk.status.node?.bootID;
  const present = node.status.nodeInfo?.bootID;
  const rebooted = before !== undefined && present !== undefined && present !== before;
  if (walk.attempt.action !== "Inherited" || !rebooted || !isReady(node)) return undefined;
  const message = `node ${walk.nodeName} was brought back by another remediation while this one waited for its host`;
  return move(walk, now, {
    to: "Restoring",
    step: "BroughtBack",
    message,
    attempt: { ...walk.attempt, deadlineMs: now.epochMs + walk.plan.timeoutMs },
    conditions: processing("Restoring", message),
  });
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

function nodeRecord(walk: Snapshot, node: Node | undefined): NonNullable<Snapshot["status"]["node"]> {
  if (node === undefined) return walk.status.node ?? { name: walk.nodeName };
  const bootID = node.status.nodeInfo?.bootID;
  return { name: node.metadata.name, uid: node.metadata.uid, ...(bootID !== undefined && { bootID }) };
}

function refuseReprovision(walk: Walk, node: Node | undefined, now: Now): Decision | undefined {
  // A reboot may have deleted the Node, and a kubelet does not bring its roles back: what was saved counts as well.
  const labels = { ...walk.status.backup?.labels, ...node?.metadata.labels };
  if (CONTROL_PLANE_ROLES.some((role) => role in labels)) {
    const message = `node ${walk.nodeName} runs the control plane: it is never reprovisioned`;
    return fail(walk, now, "ControlPlaneNode", message);
  }
  if (node === undefined && walk.status.backup === undefined) {
    const message = `node ${walk.nodeName} is gone, so nobody can tell whether it runs the control plane: it is not reprovisioned`;
    return fail(walk, now, "ControlPlaneNode", message);
  }
  // Escalate has proven its own reboots; a second cycle of a reprovision follows a first that was allowed.
  if (walk.plan.type === "Escalate" || !walk.plan.requireReboot || (walk.status.retryCount ?? 0) > 0) return undefined;
  const lastReboot = walk.host.found ? walk.host.facts.lastReboot : undefined;
  if (rebootOfThisOutage(lastReboot, node, walk.siblings)) return undefined;
  const message =
    "no reboot that proved the host off is on record for this outage: put a Reboot before this step, or set requireReboot: false";
  return fail(walk, now, "RebootRequired", message);
}
