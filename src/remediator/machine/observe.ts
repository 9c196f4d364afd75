import type { RemediationEvent } from "./model/facts/event.ts";
import type { Observations } from "./model/facts/observations.ts";
import { cycleAway, deviceFailed, targetChanged } from "./observe-devices.ts";
import { orderAnswered, orderDropped, unseenAfter } from "./observe-orders.ts";
import { statusStored } from "./observe-stored-status.ts";
import { observeNodeLease } from "./rules/outage/lease-silence.ts";
import { NOTHING_READ, recordFailedReading, recordReading, recordWhole } from "./rules/proof/off-proof.ts";

const TAINT_OFF = { taintCleared: true, taintUnansweredAtMs: undefined } as const;

/**
 * Adds an event to the observations. Nothing else changes them. Pure, so that replaying a log of events gives the same
 * observations and the same decisions.
 */
export function observe(observations: Observations, event: RemediationEvent): Observations {
  switch (event.type) {
    case "StatusStored": {
      const next = statusStored(observations, event.from, event.to);
      // The earlier reads did not know the name of the node.
      return event.isNodeNamed ? { ...next, examined: undefined, lease: undefined } : next;
    }
    case "ApiCallsObserved":
      return { ...observations, kube: event.oldest };
    case "RequestExamined":
      return {
        ...observations,
        request: { isReady: event.isReady, isFoundUnhealthy: event.isFoundUnhealthy, atMs: event.atMs },
      };
    case "ClusterChecked":
      return { ...observations, cluster: { gone: event.isGone, atMs: event.atMs } };
    case "HoldsRead":
      return { ...observations, hold: { found: event.found, failed: event.failed, atMs: event.atMs } };
    case "HostClaimed":
      return { ...observations, claim: { owned: true, targetUid: event.targetUid }, hostReleased: false };
    case "HostClaimRefused":
      return { ...observations, claim: { owned: false, by: event.by, undoing: event.undoing, atMs: event.atMs } };
    case "HostReleased":
      return { ...observations, hostReleased: true };
    case "TargetChanged":
      return targetChanged(observations, event);
    case "RebootRecorded":
      return { ...observations, rebootRecorded: true };
    case "SuccessorChecked":
      return { ...observations, successor: { waiting: event.waiting, atMs: event.atMs } };
    case "DevicesOpened":
      return { ...observations, devicesClosed: false };
    case "DevicesClosed":
      return { ...observations, devicesClosed: true };
    case "DeviceAnswered":
      return { ...observations, device: undefined };
    case "DeviceFailed":
      return deviceFailed(observations, event);
    case "IdentityRead":
      return { ...observations, identity: { check: event.verdict, atMs: event.atMs } };
    case "IdentityDiscarded":
      return { ...observations, identity: undefined };
    case "PowerRead":
      return {
        ...observations,
        power: recordReading(observations.power, event.reading, event.atMs),
        unseenOffs: unseenAfter(observations, event.reading.state),
      };
    case "PowerReadFailed":
      return { ...observations, power: recordFailedReading(observations.power, event.atMs) };
    case "WholePowerRead":
      return {
        ...observations,
        power: recordWhole(event.reading ?? { state: "Unknown", raw: "nothing", runs: false }, event.atMs),
        // The outlets answer, but the BMC does not.
        ...(event.reading?.supplied === true && cycleAway(observations)),
        unseenOffs: unseenAfter(observations, event.reading?.state),
      };
    case "OrderStarted":
      return { ...observations, identity: undefined, power: NOTHING_READ };
    case "OrderAnswered":
      return orderAnswered(observations, event);
    case "OrderDropped":
      return orderDropped(observations, event);
    case "NmiAnswered":
      // An identity check before an NMI proves nothing about the time after it.
      return { ...observations, nmi: event.answer, ...(event.answer.outcome !== "NotSent" && { identity: undefined }) };
    case "AcCycleAnswered":
      // Readings before an AC cycle prove nothing about the time after it.
      return { ...observations, acCycle: { ...event.answer, isAway: false }, identity: undefined, power: NOTHING_READ };
    case "BootOverrideRead":
      return { ...observations, override: event.override };
    case "EvidenceBegun":
      return { ...observations, evidence: "Reading" };
    case "EvidenceRead":
      return { ...observations, evidence: { found: event.evidence, readAtMs: event.epochMs } };
    case "NodeExamined": {
      const { node, dispute, members, hasOurs } = event;
      const mayBeTainted = hasOurs || observations.taintUnansweredAtMs !== undefined;
      return { ...observations, examined: { node, dispute }, members, ...(!mayBeTainted && { taintCleared: true }) };
    }
    case "LeaseRead": {
      const { lease, atMs, readAtMs, contact, proven } = event;
      return { ...observations, lease: observeNodeLease(observations.lease, lease, atMs, readAtMs, contact, proven) };
    }
    case "KdumpReceived":
      return { ...observations, kdump: { lastAtMs: event.atMs } };
    case "Quarantined":
      return { ...observations, quarantined: true, quarantineLifted: false, marksCleared: false };
    case "QuarantineLifted":
      return { ...observations, quarantineLifted: event.isNewBoot };
    case "TaintSent":
      return {
        ...observations,
        taintCleared: false,
        swapped: false,
        marksCleared: false,
        taintUnansweredAtMs: event.atMs,
      };
    case "TaintFailed": {
      const { message: taintFailure, isAnswered, earlierAtMs } = event;
      return {
        ...observations,
        taintFailure,
        // The lease is read again before the next try: what made the patch fail may also have stopped kubelets.
        ...(observations.lease !== undefined && { lease: { ...observations.lease, readAtMs: -Infinity } }),
        ...(isAnswered && { taintUnansweredAtMs: earlierAtMs }),
      };
    }
    case "TaintAnswered": {
      const { attemptId, found } = event;
      return { ...observations, taint: { attemptId, found }, taintUnansweredAtMs: undefined, taintFailure: undefined };
    }
    case "NoTaintFound":
      return { ...observations, ...TAINT_OFF };
    case "TaintOvertaken":
      return { ...observations, taintUnansweredAtMs: undefined };
    case "Untainted":
      return { ...observations, ...TAINT_OFF, taint: undefined, released: false, drain: undefined };
    case "TaintTakenOff":
      // The next proof that the host is off puts the taint on again.
      return { ...observations, taint: undefined, released: false, drain: undefined };
    case "MarksSwapped":
      return {
        ...observations,
        ...TAINT_OFF,
        swapped: true,
        quarantined: true,
        quarantineLifted: false,
        marksCleared: false,
      };
    case "MarksCleared":
      return { ...observations, ...TAINT_OFF, taint: undefined, quarantined: false, marksCleared: true };
    case "PodsReleased":
      return { ...observations, released: true, podsToRelease: Math.max(observations.podsToRelease, event.pods) };
    case "DrainChecked": {
      const { pods, attachments, atMs } = event;
      const { drain } = observations;
      const checks = (drain?.checks ?? 0) + 1;
      const isReported = drain?.pods === pods && drain.attachments === attachments && drain.isReported;
      // Pods that are left need a further deletion: they changed during the last one, or were bound after it.
      return { ...observations, drain: { pods, attachments, checks, atMs, isReported }, released: pods === 0 };
    }
    case "PodGone":
      // The next check is due at once.
      return observations.drain === undefined
        ? observations
        : { ...observations, drain: { ...observations.drain, atMs: -Infinity } };
    case "NodeSaved":
      return { ...observations, backup: { status: event.backup, resourceVersion: event.resourceVersion } };
    case "SavedNodeOutdated":
      return { ...observations, backup: undefined };
    case "NodeDeleted":
      return { ...observations, nodeDeleted: true };
    case "NodeRestored":
      return { ...observations, restoredUid: event.uid };
    case "MachineRead":
      return { ...observations, subjectMachine: { ...event.machine, atMs: event.atMs } };
    case "NodeMachineRead":
      return { ...observations, nodeMachine: event.machine };
    case "MachineExamined":
      return { ...observations, machine: event.machine };
    case "OwnerInformed":
      return { ...observations, handedToOwner: true };
    case "ReplacementChecked":
      return { ...observations, replacement: event.replacement };
    case "InstallationExamined":
      return { ...observations, installed: event.installed };
    case "ReplacementAdmission": {
      const { admission, atMs } = event;
      return { ...observations, replacementAdmission: admission.granted ? admission : { ...admission, atMs } };
    }
    default:
      return impossible(event);
  }
}

/** Fails to compile if an event has no case. */
function impossible(event: never): never {
  throw new Error(`no such event: ${JSON.stringify(event)}`);
}
