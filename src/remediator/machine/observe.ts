import { backoffMs } from "../../runtime/random.ts";
import type { RemediationEvent, OrderFailure } from "./model/event.ts";
import type { PowerOrder, Seen, SentOrder } from "./model/observations.ts";
import { ownsHost } from "./model/observations.ts";
import type { State } from "./model/state.ts";
import { DEVICE_FINAL_RETRY_MS, DEVICE_RETRY_MAX_MS, DEVICE_RETRY_MIN_MS } from "./model/timings.ts";
import { observeLease } from "./rules/lease-silence.ts";
import { NOTHING_READ, recordFailedReading, recordReading, recordWhole } from "./rules/off-proof.ts";
import { heardAtMs } from "./rules/power-orders.ts";

const TAINT_OFF = { taintCleared: true, taintUnansweredAtMs: undefined } as const;

/**
 * What an event means: the one place that adds to the observations. Pure, so that a recorded log of events leads to the same
 * observations again, and with them `decide` to the same decisions.
 */
export function observe(seen: Seen, event: RemediationEvent): Seen {
  switch (event.type) {
    case "StatusStored": {
      const next = seenAfter(seen, event.from, event.to);
      // What was seen of the node before it was named was seen of none.
      return event.isNodeNamed ? { ...next, examined: undefined, lease: undefined } : next;
    }
    case "ApiCallsObserved":
      return { ...seen, kube: event.oldest };
    case "RequestExamined":
      return { ...seen, request: { isReady: event.isReady, isListed: event.isListed, atMs: event.atMs } };
    case "ClusterChecked":
      return { ...seen, cluster: { gone: event.isGone, atMs: event.atMs } };
    case "HoldsRead":
      return { ...seen, stop: { found: event.found, failed: event.failed, atMs: event.atMs } };
    case "HostClaimed":
      return { ...seen, claim: { owned: true, targetUid: event.targetUid }, hostReleased: false };
    case "HostClaimRefused":
      return { ...seen, claim: { owned: false, by: event.by, undoing: event.undoing, atMs: event.atMs } };
    case "HostReleased":
      return { ...seen, hostReleased: true };
    case "TargetChanged":
      return targetChanged(seen, event);
    case "RebootRecorded":
      return { ...seen, rebootRecorded: true };
    case "SuccessorChecked":
      return { ...seen, successor: { waiting: event.waiting, atMs: event.atMs } };
    case "DevicesOpened":
      return { ...seen, devicesClosed: false };
    case "DevicesClosed":
      return { ...seen, devicesClosed: true };
    case "DeviceAnswered":
      return { ...seen, device: undefined };
    case "DeviceFailed":
      return deviceFailed(seen, event);
    case "IdentityRead":
      return { ...seen, identity: { verdict: event.verdict, atMs: event.atMs } };
    case "IdentityDiscarded":
      return { ...seen, identity: undefined };
    case "PowerRead":
      return { ...seen, power: recordReading(seen.power, event.reading, event.atMs) };
    case "PowerReadFailed":
      return { ...seen, power: recordFailedReading(seen.power, event.atMs) };
    case "WholePowerRead":
      return {
        ...seen,
        power: recordWhole(event.reading ?? { state: "Unknown", raw: "nothing", runs: false }, event.atMs),
      };
    case "OrderStarted":
      return { ...seen, identity: undefined, power: NOTHING_READ };
    case "OrderAnswered":
      return orderAnswered(seen, event);
    case "OrderDropped":
      return orderDropped(seen, event);
    case "BootOverrideRead":
      return { ...seen, override: event.override };
    case "NodeExamined": {
      const { node, dispute, members, bearsOurs } = event;
      const mayBeTainted = bearsOurs || seen.taintUnansweredAtMs !== undefined;
      return { ...seen, examined: { node, dispute }, members, ...(!mayBeTainted && { taintCleared: true }) };
    }
    case "LeaseRead": {
      const { lease, atMs, readAtMs, contact } = event;
      return { ...seen, lease: observeLease(seen.lease, lease, atMs, readAtMs, contact) };
    }
    case "Quarantined":
      return { ...seen, quarantined: true, quarantineLifted: false, marksCleared: false };
    case "QuarantineLifted":
      return { ...seen, quarantineLifted: event.isNewBoot };
    case "TaintSent":
      return { ...seen, taintCleared: false, swapped: false, marksCleared: false, taintUnansweredAtMs: event.atMs };
    case "TaintFailed": {
      const { message: taintFailure, isAnswered, earlierAtMs } = event;
      return { ...seen, taintFailure, ...(isAnswered && { taintUnansweredAtMs: earlierAtMs }) };
    }
    case "TaintAnswered": {
      const { attemptId, found } = event;
      return { ...seen, taint: { attemptId, found }, taintUnansweredAtMs: undefined, taintFailure: undefined };
    }
    case "NoTaintFound":
      return { ...seen, ...TAINT_OFF };
    case "TaintOvertaken":
      return { ...seen, taintUnansweredAtMs: undefined };
    case "Untainted":
      return { ...seen, ...TAINT_OFF, taint: undefined, released: false, drain: undefined };
    case "TaintTakenOff":
      // Whoever proves the host off again puts the taint on again.
      return { ...seen, taint: undefined, released: false, drain: undefined };
    case "MarksSwapped":
      return {
        ...seen,
        ...TAINT_OFF,
        swapped: true,
        quarantined: true,
        quarantineLifted: false,
        marksCleared: false,
      };
    case "MarksCleared":
      return { ...seen, ...TAINT_OFF, taint: undefined, quarantined: false, marksCleared: true };
    case "PodsReleased":
      return { ...seen, released: true };
    case "DrainChecked": {
      const { pods, attachments, atMs } = event;
      const checks = (seen.drain?.checks ?? 0) + 1;
      // What is left may need a further deletion: a pod changed while it was being deleted, or was bound only now.
      return { ...seen, drain: { pods, attachments, checks, atMs }, released: pods === 0 };
    }
    case "PodGone":
      // The next check is due at once.
      return seen.drain === undefined ? seen : { ...seen, drain: { ...seen.drain, atMs: -Infinity } };
    case "NodeSaved":
      return { ...seen, backup: { status: event.backup, resourceVersion: event.resourceVersion } };
    case "SavedNodeOutdated":
      return { ...seen, backup: undefined };
    case "NodeDeleted":
      return { ...seen, nodeDeleted: true };
    case "NodeRestored":
      return { ...seen, restoredUid: event.uid };
    case "MachineRead":
      return { ...seen, subjectMachine: { ...event.machine, atMs: event.atMs } };
    case "NodeMachineRead":
      return { ...seen, nodeMachine: event.machine };
    case "MachineExamined":
      return { ...seen, machine: event.machine };
    case "OwnerInformed":
      return { ...seen, handedToOwner: true };
    case "ReplacementChecked":
      return { ...seen, replacement: event.replacement };
    case "InstallationExamined":
      return { ...seen, installed: event.installed };
    case "ReplacementAdmission": {
      const { admission, atMs } = event;
      return { ...seen, replaceTurn: admission.granted ? admission : { ...admission, atMs } };
    }
    default:
      return impossible(event);
  }
}

/** Compiles only while every event has a case of its own. */
function impossible(event: never): never {
  throw new Error(`no such event: ${JSON.stringify(event)}`);
}

/** What was learned from a target's devices counts for nothing once it is edited, since they may be another host's. */
function targetChanged(
  seen: Seen,
  { targetUid, isEdited }: Extract<RemediationEvent, { type: "TargetChanged" }>,
): Seen {
  // What was taken is another target than this one, which was made anew.
  const isOther = seen.claim?.owned === true && seen.claim.targetUid !== targetUid;
  const next = isOther ? { ...seen, claim: undefined } : seen;
  if (!isEdited) return next;
  return { ...next, identity: undefined, power: NOTHING_READ, device: undefined, override: undefined };
}

function deviceFailed(seen: Seen, event: Extract<RemediationEvent, { type: "DeviceFailed" }>): Seen {
  const { wasOpen, jitter, atMs } = event;
  // A password that was read a while ago may have been changed since: it is read anew before that is believed.
  const isStale = wasOpen && event.problem.reason === "BMCAuthenticationFailed";
  const problem = isStale ? { ...event.problem, final: false } : event.problem;
  const failures = seen.device?.final === problem.final ? seen.device.failures + 1 : 1;
  const random = { next: () => jitter };
  const inMs = problem.final
    ? DEVICE_FINAL_RETRY_MS
    : backoffMs(random, DEVICE_RETRY_MIN_MS, DEVICE_RETRY_MAX_MS, failures - 1);
  return { ...seen, device: { ...problem, failures, retryAtMs: atMs + inMs } };
}

function orderAnswered(seen: Seen, event: Extract<RemediationEvent, { type: "OrderAnswered" }>): Seen {
  const { attemptId, action, failure, atMs } = event;
  const { order: previous } = seen;
  const outcome = failure === undefined ? "Acknowledged" : outcomeOf(failure, previous);
  const device = afterOrder(seen.device, action, atMs);
  const problem = outcome === "Rejected" && device !== undefined ? { problem: device } : {};
  return { ...seen, device, order: { attemptId, action, outcome, atMs, ...heardBefore(previous, action), ...problem } };
}

/** An order that was not sent leaves everything to be looked at again, as after a restart. */
function orderDropped(seen: Seen, event: Extract<RemediationEvent, { type: "OrderDropped" }>): Seen {
  const { attemptId, action, isLate, atMs } = event;
  const { order: previous } = seen;
  const problem = previous?.action === action ? previous.problem : undefined;
  const unsent = { attemptId, action, outcome: "Rejected", atMs, ...heardBefore(previous, action) } as const;
  return {
    ...seen,
    identity: undefined,
    order: { ...unsent, ...(problem && { problem }), ...(isLate && { isLate }) },
  };
}

function heardBefore(previous: SentOrder | undefined, action: PowerOrder): { heardBeforeMs?: number } {
  const heardBeforeMs = previous?.action === action ? heardAtMs(previous) : undefined;
  return heardBeforeMs === undefined ? {} : { heardBeforeMs };
}

/** Problems of an order that say nothing against a reading. */
const OF_ORDERS: ReadonlySet<string> = new Set(["BMCPrivilegeTooLow", "BMCUnsupported"]);

/**
 * A device that will not power the host off for good can still tell how it is: who takes back what was done, and gives the
 * verdict, does so as soon as it has read that, not after the long pause that keeps accounts from being locked.
 */
function afterOrder(device: Seen["device"], action: PowerOrder, atMs: number): Seen["device"] {
  if (device === undefined || action !== "ForceOff" || !OF_ORDERS.has(device.reason)) return device;
  return { ...device, retryAtMs: atMs + DEVICE_RETRY_MIN_MS };
}

/**
 * What a failed order came to. One that got no connection was not sent, or its connection broke: it is sent again once; a
 * BMC that does so every time (it restarts, it drops connections) is believed by its state.
 */
function outcomeOf({ code, isPartlyTaken }: OrderFailure, previous: SentOrder | undefined): SentOrder["outcome"] {
  if (isPartlyTaken || code === "Timeout" || code === "BadResponse") return "Uncertain";
  return code === "Unreachable" && previous?.outcome === "Rejected" ? "Uncertain" : "Rejected";
}

/** What a stored status makes of what was seen: a new attempt begins without any, and so on. */
function seenAfter(seen: Seen, from: State, to: State): Seen {
  const begins = from.name !== to.name;
  switch (to.name) {
    case "Verifying": {
      const again = from.name === "Verifying" && from.attempt.id === to.attempt.id;
      // A host that was given up just before is another's by now, or has to be taken anew.
      return again ? seen : { ...seen, ...nothingSeenOfAttempt(), claim: ownsHost(seen) ? seen.claim : undefined };
    }
    case "PoweringOff":
      // A further order rests on a look at the node, too, which a check of the identity alone is not.
      return begins && from.name !== "Verifying" ? { ...seen, identity: undefined } : seen;
    case "Releasing":
      return begins ? { ...seen, released: false, drain: undefined } : seen;
    case "Undoing":
      if (!begins) return seen;
      // Another owner's plans for the host may have changed since it was last asked.
      return {
        ...seen,
        claim: seen.claim?.owned === true ? seen.claim : undefined,
        // An On of one device says nothing of the others, which may have been turned off.
        power: nothingSeenOfAttempt().power,
        taintCleared: false,
        marksCleared: false,
      };
    default:
      return seen;
  }
}

/** What a process knows when it sees a remediation for the first time. */
export function nothingObserved(): Seen {
  return {
    claim: undefined,
    lease: undefined,
    kube: undefined,
    hostReleased: false,
    replaceTurn: undefined,
    ...nothingSeenOfAttempt(),
  };
}

/** The part of `Seen` that a new attempt starts without. */
function nothingSeenOfAttempt(): Omit<Seen, "claim" | "lease" | "kube" | "hostReleased" | "replaceTurn"> {
  return {
    examined: undefined,
    subjectMachine: undefined,
    request: undefined,
    cluster: undefined,
    members: [],
    identity: undefined,
    stop: undefined,
    order: undefined,
    power: { last: undefined, offReads: 0, offAtMs: undefined, provenAtMs: undefined },
    device: undefined,
    taint: undefined,
    taintUnansweredAtMs: undefined,
    taintFailure: undefined,
    quarantined: false,
    taintCleared: false,
    marksCleared: false,
    swapped: false,
    released: false,
    drain: undefined,
    override: undefined,
    backup: undefined,
    nodeDeleted: false,
    rebootRecorded: false,
    restoredUid: undefined,
    quarantineLifted: false,
    devicesClosed: false,
    nodeMachine: undefined,
    machine: undefined,
    installed: undefined,
    replacement: undefined,
    handedToOwner: false,
    successor: undefined,
  };
}
