import type { Observations } from "./observations.ts";

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
export function nothingObservedOfAttempt(): Omit<
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
