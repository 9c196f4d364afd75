import { decideWithoutCluster, resumeAfterWait } from "./rules/waits/unreachable-cluster.ts";
import { isReady } from "../../nodes/ready.ts";
import { fail, undo } from "./rules/attempts.ts";
import { run } from "./rules/transitions.ts";
import { withEvidence } from "./rules/diagnosis/evidence.ts";
import { reportedHold } from "./rules/waits/holds.ts";
import type { Now, Snapshot, AttemptSnapshot } from "./model/facts/snapshot.ts";
import type { Attempt, Outcome, State } from "./model/decision/state.ts";
import { isFinal } from "./model/decision/state.ts";
import { decidePoweringOff } from "./states/powering-off.ts";
import { decideNetworkBoot, decideReleasing } from "./states/releasing.ts";
import { decidePoweringOn } from "./states/powering-on.ts";
import { decideRejoining, isNewBoot } from "./states/rejoining.ts";
import { decideRestoring } from "./states/restoring.ts";
import { decideResolving, mayOweUndo } from "./states/resolving.ts";
import { decideVerifying } from "./states/verifying.ts";
import { HOLD_REREAD_MS } from "./model/decision/timings.ts";
import { decideUndoing, isNodeAwaited, restoreDeletedNode } from "./states/undoing.ts";
import { decideUnknown } from "./states/unknown.ts";
import { reportApiRecovered } from "./rules/waits/api-failure.ts";
import { decideUnread } from "./rules/waits/unread-input.ts";
import { decideInstallation } from "./states/provisioning-host.ts";
import { decideMachineDeletion, decideReplacement, recordIfDeleted } from "./states/provisioning-machine.ts";
import type { Decision } from "./model/decision/decision.ts";

/**
 * Decides what to do next about one remediation. Every transition comes from here. Pure: the result depends on the
 * arguments alone.
 */
export function decide(snapshot: Snapshot, now: Now): Decision {
  return withEvidence(snapshot, now, rereadHold(snapshot, now, decideNow(snapshot, now)));
}

/** Repeats a live read that found a hold while the remediation waits for the hold to end: the watch may be late. */
function rereadHold(snapshot: Snapshot, now: Now, decision: Decision): Decision {
  const { hold } = snapshot.observations;
  const isWait = decision.status === undefined && decision.effects.length === 0;
  if (hold?.found === undefined || !isWait || reportedHold(snapshot) === undefined) return decision;
  const inMs = hold.atMs + HOLD_REREAD_MS - now.monotonicMs;
  if (inMs <= 0) return run({ do: "readHolds" });
  return { ...decision, nextCheckMs: Math.min(decision.nextCheckMs ?? Infinity, inMs) };
}

function decideNow(snapshot: Snapshot, now: Now): Decision {
  const { clusterProblem, unread, state } = snapshot;
  if (state.name === "Unknown") return decideState(snapshot, now);
  if (unread !== undefined && !isFinal(state.name)) return decideUnread(snapshot, now, unread);
  if (clusterProblem === undefined)
    return resumeAfterWait(snapshot, now) ?? reportApiRecovered(snapshot, now) ?? decideState(snapshot, now);
  return decideWithoutCluster(snapshot, now, clusterProblem, { abort: decideAbort, usual: decideState });
}

function decideState(snapshot: Snapshot, now: Now): Decision {
  const { state } = snapshot;
  switch (state.name) {
    case "Unknown":
      return decideUnknown(snapshot, state, now);
    case "Succeeded":
    case "Failed":
      return decideFinal(snapshot, now);
    case "Undoing":
      return decideUndoing(snapshot, state, now);
    case "Resolving":
      return decideAbort(snapshot, now) ?? decideResolving(snapshot, state.attempt, now);
    case "Verifying":
      return onOwnHost(snapshot, state.attempt, now, decideVerifying);
    case "PoweringOff":
      return onOwnHost(snapshot, state.attempt, now, decidePoweringOff);
    case "Releasing":
      return onOwnHost(snapshot, state.attempt, now, decideReleasing);
    case "Provisioning":
      return (
        decideAbort(snapshot, now) ??
        decideReplacement({ ...snapshot, attempt: state.attempt }, now) ??
        onOwnHost(snapshot, state.attempt, now, decideProvisioning)
      );
    case "PoweringOn":
      return onOwnHost(snapshot, state.attempt, now, decidePoweringOn);
    case "Rejoining":
      return onOwnHost(snapshot, state.attempt, now, decideRejoining);
    case "Restoring":
      return onOwnHost(snapshot, state.attempt, now, decideRestoring);
    default:
      return impossible(state);
  }
}

function decideProvisioning(snapshot: AttemptSnapshot, now: Now): Decision {
  // The spec may have been edited since the image was removed. The image must be put back nevertheless.
  const { installation } = snapshot.status;
  const isInstalling = installation !== undefined && installation.step !== "Provisioned";
  const { via } = snapshot.strategy;
  if (via === "BareMetalHost" || isInstalling) return decideInstallation(snapshot, now);
  return via === "NetworkBoot" ? decideNetworkBoot(snapshot, now) : decideMachineDeletion(snapshot, now);
}

/** Fails to compile if a state has no case. */
function impossible(state: never): never {
  throw new Error(`no such state: ${JSON.stringify(state)}`);
}

/**
 * Decides about a remediation that has its verdict, which never changes. A deleted Node that joins again still gets its
 * labels back. When no such Node is awaited, the finalizer is removed even if the object is not being deleted: it must
 * not block an uninstall of the agent.
 */
function decideFinal(snapshot: Snapshot, now: Now): Decision {
  const { deleting, hasFinalizer } = snapshot.remediation;
  const restoring = restoreDeletedNode(snapshot, now);
  if (restoring !== undefined) return restoring;
  // The health check that created the object waits for the old node, which never comes back, so it would never delete
  // the object.
  const successor = snapshot.status.replacement?.nodeName;
  if (!deleting && successor !== undefined && successor !== snapshot.nodeName) return run({ do: "deleteSelf" });
  const isDone = deleting || !isNodeAwaited(snapshot);
  return isDone && hasFinalizer ? run({ do: "dropFinalizer" }) : { notes: [], effects: [] };
}

/** Decides in a state after the claim. An abort comes first, and nothing is done to a host that is not ours. */
function onOwnHost(
  snapshot: Snapshot,
  attempt: Attempt,
  now: Now,
  decideOwned: (snapshot: AttemptSnapshot, now: Now) => Decision,
): Decision {
  const aborted = decideAbort(snapshot, now);
  if (aborted !== undefined) return aborted;
  if (!snapshot.host.found) {
    return fail(snapshot, now, "TargetGone", snapshot.host.message);
  }
  const { takenBack } = snapshot.host.facts;
  if (takenBack !== undefined && mayBeOrdered(snapshot.state)) return fail(snapshot, now, "HostAttached", takenBack);
  const { claim } = snapshot.observations;
  if (claim === undefined) return run({ do: "claimHost" });
  if (!claim.owned) {
    const { namespace, name } = claim.by;
    return fail(snapshot, now, "HostLost", `the host belongs to remediation ${namespace}/${name} now`);
  }
  return decideOwned({ ...snapshot, attempt }, now);
}

/** Whether the state may need power orders. From Rejoining on, the host is on, and only the node needs work. */
function mayBeOrdered({ name }: State): boolean {
  return name !== "Rejoining" && name !== "Restoring";
}

function decideAbort(snapshot: Snapshot, now: Now): Decision | undefined {
  const { deleting, timedOut, hasFinalizer } = snapshot.remediation;
  const { state } = snapshot;
  const attempt = "attempt" in state ? state.attempt : undefined;
  // If there is nothing to undo, the finalizer of another controller keeps the object. Otherwise it is undone.
  if (deleting && !hasFinalizer && !mayOweUndo(snapshot, attempt)) return { notes: [], effects: [] };
  // A health check deletes its remediation when the node is Ready. Such a remediation continues to its success.
  if (deleting && isNodeBack(snapshot)) return undefined;
  const outcome: Outcome | undefined = deleting
    ? { verdict: "Deleted", reason: "RemediationDeleted", message: "the remediation is being deleted" }
    : timedOut
      ? { verdict: "TimedOut", reason: "TimedOut", message: "the health check has timed this remediation out" }
      : undefined;
  if (outcome === undefined) return undefined;
  // If the Machine was deleted, another controller powers the host, so the undo must not power it on.
  const given =
    state.name === "Provisioning" ? recordIfDeleted({ ...snapshot, attempt: state.attempt }, now) : undefined;
  return given ?? undo(snapshot, now, outcome);
}

function isNodeBack(snapshot: Snapshot): boolean {
  const { state, node } = snapshot;
  if (state.name !== "Rejoining" && state.name !== "Restoring") return false;
  return node !== undefined && isReady(node) && isNewBoot(snapshot, node);
}
