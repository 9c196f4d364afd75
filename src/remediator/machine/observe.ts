import { backoffMs } from "../../runtime/random.ts";
import type { RemediationEvent } from "./model/facts/event.ts";
import type { Observations } from "./model/facts/observations.ts";
import { ownsHost } from "./model/facts/observations.ts";
import type { State } from "./model/decision/state.ts";
import { DEVICE_FINAL_RETRY_MS, DEVICE_RETRY_MAX_MS, DEVICE_RETRY_MIN_MS } from "./model/decision/timings.ts";
import { observeNodeLease } from "./rules/outage/lease-silence.ts";
import { NOTHING_READ, recordFailedReading, recordReading, recordWhole } from "./rules/proof/off-proof.ts";
import { unseenAfter, orderAnswered, orderDropped } from "./observe-orders.ts";

const TAINT_OFF = { taintCleared: true, taintUnansweredAtMs: undefined } as const;

/**
 * Adds an event to the observations. Nothing else changes them. Pure, so that replaying a log of events gives the same
 * observations and the same decisions.
 */
export function observe(observations: Observations, event: RemediationEvent): Observations {
  switch (event.type) {
    case "StatusStored": {
      const next = afterStatusStored(observations, event.from, event.to);
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
      const { node, dispute, members, bearsOurs } = event;
      const mayBeTainted = bearsOurs || observations.taintUnansweredAtMs !== undefined;
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

/** Discards what the devices of an edited target have shown: its devices may now belong to another host. */
function targetChanged(
  observations: Observations,
  { targetUid, isEdited }: Extract<RemediationEvent, { type: "TargetChanged" }>,
): Observations {
  // The claim is on a target that has since been deleted and created again.
  const isOther = observations.claim?.owned === true && observations.claim.targetUid !== targetUid;
  const next = isOther ? { ...observations, claim: undefined } : observations;
  if (!isEdited) return next;
  return { ...next, identity: undefined, power: NOTHING_READ, device: undefined, override: undefined };
}

/** Records that the BMC does not answer during the AC cycle, if one was ordered. */
function cycleAway({ acCycle }: Observations): Partial<Observations> {
  return acCycle === undefined ? {} : { acCycle: { ...acCycle, isAway: true } };
}

function deviceFailed(
  observations: Observations,
  event: Extract<RemediationEvent, { type: "DeviceFailed" }>,
): Observations {
  const { wasOpen, jitter, atMs } = event;
  // The password may have changed since the device was opened, so it is read again before the refusal counts as final.
  const isStale = wasOpen && event.problem.reason === "BMCAuthenticationFailed";
  const problem = isStale ? { ...event.problem, final: false } : event.problem;
  const failures = observations.device?.final === problem.final ? observations.device.failures + 1 : 1;
  const random = { next: () => jitter };
  const inMs = problem.final
    ? DEVICE_FINAL_RETRY_MS
    : backoffMs(random, DEVICE_RETRY_MIN_MS, DEVICE_RETRY_MAX_MS, failures - 1);
  const isSilent = problem.reason === "BMCUnreachable" || problem.reason === "BMCTimeout";
  return {
    ...observations,
    device: { ...problem, failures, retryAtMs: atMs + inMs },
    ...(isSilent && cycleAway(observations)),
  };
}

/** Updates the observations after a status was stored: discards those that do not apply to its state. */
function afterStatusStored(observations: Observations, from: State, to: State): Observations {
  const begins = from.name !== to.name;
  switch (to.name) {
    case "Verifying": {
      const again = from.name === "Verifying" && from.attempt.id === to.attempt.id;
      // A host that was released may belong to another remediation, so it has to be claimed again.
      return again
        ? observations
        : {
            ...observations,
            ...nothingObservedOfAttempt(),
            claim: ownsHost(observations) ? observations.claim : undefined,
          };
    }
    case "PoweringOff":
      // A further order also needs a fresh read of the node, so the next identity check must come with one.
      return begins && from.name !== "Verifying" ? { ...observations, identity: undefined } : observations;
    case "Releasing":
      if (begins) return { ...observations, released: false, drain: undefined };
      return observations.drain === undefined
        ? observations
        : { ...observations, drain: { ...observations.drain, isReported: true } };
    case "Undoing":
      if (!begins) return observations;
      // The owner of the host may have released it since the last claim.
      return {
        ...observations,
        claim: observations.claim?.owned === true ? observations.claim : undefined,
        // A reading On of one device says nothing about the others, which may have been turned off.
        power: nothingObservedOfAttempt().power,
        // A device that cannot set a boot override can still power the host on.
        device: observations.device?.reason === "BMCUnsupported" ? undefined : observations.device,
        taintCleared: false,
        marksCleared: false,
      };
    default:
      return observations;
  }
}

/** The observations of a process that has just learned of a remediation. */
export function nothingObserved(): Observations {
  return {
    claim: undefined,
    lease: undefined,
    kube: undefined,
    hostReleased: false,
    replacementAdmission: undefined,
    evidence: undefined,
    ...nothingObservedOfAttempt(),
  };
}

/** The part of the observations that a new attempt starts without. */
function nothingObservedOfAttempt(): Omit<
  Observations,
  "claim" | "lease" | "kube" | "hostReleased" | "replacementAdmission" | "evidence"
> {
  return {
    examined: undefined,
    subjectMachine: undefined,
    request: undefined,
    cluster: undefined,
    members: [],
    identity: undefined,
    hold: undefined,
    order: undefined,
    nmi: undefined,
    acCycle: undefined,
    kdump: undefined,
    unseenOffs: undefined,
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
    podsToRelease: 0,
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
