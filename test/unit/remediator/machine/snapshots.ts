import { readMachine } from "../../../../src/api/cluster-api/cluster-api.ts";
import type { BareMetalRemediationStatus } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node, Taint } from "../../../../src/api/kubernetes/core.ts";
import type { Condition } from "../../../../src/api/schema/meta.ts";
import { strategyOf } from "../../../../src/remediator/machine/model/decision/strategy.ts";
import type { BoundedStrategy } from "../../../../src/remediator/machine/model/decision/strategy.ts";
import type { Observations, SentOrder } from "../../../../src/remediator/machine/model/facts/observations.ts";
import type { Now, Snapshot } from "../../../../src/remediator/machine/model/facts/snapshot.ts";
import type { Attempt, Outcome, State, StateName } from "../../../../src/remediator/machine/model/decision/state.ts";
import { localNode } from "../../../../src/nodes/subject.ts";
import { formatAttempt } from "../../../../src/remediator/machine/model/decision/state.ts";
import type { Decision } from "../../../../src/remediator/machine/model/decision/decision.ts";
import { nothingObserved } from "../../../../src/remediator/machine/model/facts/nothing-observed.ts";
import { observe } from "../../../../src/remediator/machine/observe.ts";

/** The time of every decision in these tests. */
export const NOW: Now = { epochMs: Date.UTC(2026, 0, 1, 12), monotonicMs: 1_000_000 };
export const OWNER = { uid: "other-uid", kind: "BareMetalRemediation", namespace: "ns", name: "other" };

export function node(changes: { uid?: string; bootID?: string; ready?: string; taints?: Taint[] } = {}): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1", uid: changes.uid ?? "node-uid", resourceVersion: "1" },
    spec: { taints: changes.taints ?? [] },
    status: {
      conditions: [{ type: "Ready", status: changes.ready ?? "Unknown", lastTransitionTime: "2026-01-01T11:00:00Z" }],
      nodeInfo: { bootID: changes.bootID ?? "old-boot" },
    },
  };
}

export function attempt(changes: Partial<Attempt> = {}): Attempt {
  return {
    id: "a1",
    kind: "Reboot",
    action: "None",
    actionAtMs: NOW.epochMs - 2_000,
    orders: 1,
    sent: false,
    done: false,
    startedAtMs: NOW.epochMs - 3_000,
    deadlineMs: NOW.epochMs + 60_000,
    offConfirmedAtMs: undefined,
    releasingSinceMs: undefined,
    bootOverride: false,
    secondTaint: true,
    ...changes,
  };
}

/** The attempt in the middle of each state. */
const ATTEMPTS: Record<StateName, Partial<Attempt>> = {
  Resolving: {},
  Verifying: {},
  PoweringOff: { action: "ForceOff", sent: true },
  Releasing: { action: "ForceOff", sent: true, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
  Provisioning: {
    kind: "Reprovision",
    action: "ForceOff",
    sent: true,
    done: true,
    offConfirmedAtMs: NOW.epochMs - 1_000,
  },
  PoweringOn: { action: "On", offConfirmedAtMs: NOW.epochMs - 1_000 },
  Rejoining: { action: "On", sent: true, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
  Restoring: { action: "On", sent: true, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
  Undoing: { action: "ForceOff", sent: true, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
  Succeeded: { action: "On", sent: true, done: true },
  Failed: { action: "On", sent: true, done: true },
};

export function stateOf(name: StateName, changes: Partial<Attempt> = {}): State {
  const present = attempt({ ...ATTEMPTS[name], ...changes });
  switch (name) {
    case "Succeeded":
    case "Failed":
      return { name };
    case "Undoing":
      return { name, attempt: present, outcome: { verdict: "Failed", reason: "PowerOnTimeout", message: "it failed" } };
    default:
      return { name, attempt: present };
  }
}

export interface SnapshotChanges {
  state: StateName;
  attempt?: Partial<Attempt>;
  strategy?: Partial<BoundedStrategy>;
  observations?: Partial<Observations>;
  status?: BareMetalRemediationStatus;
  remediation?: Partial<Snapshot["remediation"]>;
  /** Why it is being undone. */
  outcome?: Outcome;
  other?: Partial<Omit<Snapshot, "state" | "strategy" | "observations" | "status" | "remediation">>;
}

/** A snapshot in the middle of a state, on a host that the remediation owns, with `changes`. */
export function snapshot(changes: SnapshotChanges): Snapshot {
  const base = stateOf(changes.state, changes.attempt);
  const state = base.name === "Undoing" ? { ...base, outcome: changes.outcome ?? base.outcome } : base;
  const actionAtMs = "attempt" in state ? state.attempt?.actionAtMs : undefined;
  const orderedAtMs = actionAtMs === undefined ? -Infinity : NOW.monotonicMs - (NOW.epochMs - actionAtMs);
  return {
    remediation: {
      uid: "uid",
      generation: 1,
      deleting: false,
      timedOut: false,
      hasFinalizer: true,
      named: undefined,
      isRequested: false,
      namespace: "ns",
      name: "n1",
      ageMs: 3_000,
      isRestored: false,
      isConfirmed: false,
      readyInBoot: undefined,
      nodeAtCreation: undefined,
      ...changes.remediation,
    },
    strategy: { ...strategyOf(bareMetalRemediationSpecSchema.parse({})), ...changes.strategy },
    state,
    status: {
      phase: changes.state,
      node: { name: "n1", uid: "node-uid", bootID: "old-boot" },
      ...("attempt" in state && state.attempt !== undefined && { attempt: formatAttempt(state.attempt) }),
      ...changes.status,
    },
    nodeName: "n1",
    subject: localNode("n1"),
    unresolved: false,
    unread: undefined,
    clusterProblem: undefined,
    clusterUid: undefined,
    isOwnCluster: false,
    node: node(),
    host: {
      found: true,
      facts: {
        ref: { kind: "FencingTarget", namespace: "ironfence", name: "n1", uid: "target-uid" },
        identity: { systemUUID: "11111111-2222-4333-8444-000000000001" },
        owner: undefined,
        lastReboot: undefined,
        isPoweredByMark: false,
        takenBack: undefined,
        isInUse: true,
      },
    },
    hold: undefined,
    admission: { granted: true },
    zone: undefined,
    runsHere: false,
    siblings: [],
    earlyForMs: 0,
    leaseUnchanged: undefined,
    remainingMs: 60_000,
    intentAtMs: orderedAtMs,
    intentSeenAtMs: orderedAtMs,
    cycleSeenAtMs: orderedAtMs,
    freshId: "fresh",
    ...changes.other,
    observations: {
      ...nothingObserved(),
      claim: { owned: true, targetUid: "target-uid" },
      evidence: { found: undefined, readAtMs: 0 },
      ...changes.observations,
    },
  };
}

/** A host that was proven off a moment ago. */
export const PROVEN: Observations["power"] = {
  last: { state: "Off", raw: "Off", atMs: NOW.monotonicMs - 100 },
  offReads: 2,
  offAtMs: NOW.monotonicMs - 100,
  provenAtMs: NOW.monotonicMs - 100,
};
export const READ_ON: Observations["power"] = {
  last: { state: "On", raw: "On", atMs: NOW.monotonicMs - 100 },
  offReads: 0,
  offAtMs: undefined,
  provenAtMs: undefined,
};
export const READ_OFF: Observations["power"] = {
  last: { state: "Off", raw: "Off", atMs: NOW.monotonicMs - 400 },
  offReads: 1,
  offAtMs: NOW.monotonicMs - 400,
  provenAtMs: undefined,
};
export const DEVICE_AWAY = {
  reason: "BMCUnreachable",
  message: "no connection",
  final: false,
  failures: 1,
  retryAtMs: NOW.monotonicMs + 1_000,
} as const;
/** A device that refuses our account permanently. */
export const REFUSED_FOR_GOOD = { ...DEVICE_AWAY, reason: "BMCAuthenticationFailed", final: true } as const;
export const VERIFIED: Observations["identity"] = {
  check: { verified: true, message: "it is the host" },
  atMs: NOW.monotonicMs - 100,
};
export const STALE_LEASE: NonNullable<Observations["lease"]> = {
  uid: "lease-uid",
  resourceVersion: "1",
  renewTimeMs: NOW.epochMs - 120_000,
  durationMs: 40_000,
  renewedAtMs: undefined,
  writtenAtMs: undefined,
  readAtMs: NOW.monotonicMs,
  answeringSinceMs: -Infinity,
};

/** A decision in a few words: the stored state with its reason, then the effect or the time that it waits. */
export function told(decision: Decision, from: StateName): string {
  const effects = decision.effects.map((effect) => {
    if (effect.do === "setBootOverride") return `setBootOverride ${effect.override}`;
    return effect.do === "powerOn" && effect.outletsOnly === true ? "powerOn outletsOnly" : effect.do;
  });
  const stored = decision.status === undefined ? [] : [`${to(decision, from)} (${decision.notes[0]?.reason})`];
  const parts = [...stored, ...effects];
  if (parts.length > 0) return parts.join(", ");
  return decision.nextCheckMs === undefined ? "wait for a change" : "wait";
}

function to(decision: Decision, from: StateName): string {
  return decision.status?.phase === from ? "stay" : `→ ${decision.status?.phase}`;
}

/** The last observation of remediations that wait for the host: none. */
export const NO_SUCCESSOR = { waiting: false, atMs: NOW.monotonicMs };
/** The observations of an undo that has removed its taint. */
export const UNDOING: Partial<Observations> = { taintCleared: true, successor: NO_SUCCESSOR };

/** The last order had no effect. */
export const REFUSED: Partial<Observations> = {
  taintCleared: true,
  examined: { node: node() },
  identity: VERIFIED,
  order: { attemptId: "a1", action: "ForceOff", outcome: "Rejected", atMs: NOW.monotonicMs - 3_000 },
};

/** The condition Processing with this reason and message. */
export function said(reason: string, message: string): Condition {
  return { type: "Processing", status: "True", reason, message, lastTransitionTime: "2026-01-01T11:00:00Z" };
}

export const TARGET_GONE = { found: false, reason: "NoTarget", message: "the target is gone" } as const;
/** The owner that creates a new Machine for a deleted one. */
export const SET = { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "MachineSet", name: "set", uid: "set-uid" };
/** The host that answers is another one. */
export const MISMATCH: Observations["identity"] = {
  check: { verified: false, reason: "Mismatch", message: "" },
  atMs: NOW.monotonicMs,
};

/** A power order that was sent `ageMs` ago. */
export function ordered(outcome: SentOrder["outcome"], ageMs: number, changes: Partial<SentOrder> = {}): SentOrder {
  return { attemptId: "a1", action: "ForceOff", outcome, atMs: NOW.monotonicMs - ageMs, ...changes };
}

/** The condition that announces the deletion of the Node. */
export function announced(): Condition {
  const [reason, message] = ["NodeDeletionExpected", ""];
  return {
    type: "PermanentNodeDeletionExpected",
    status: "True",
    reason,
    message,
    lastTransitionTime: "2026-01-01T11:00:00Z",
  };
}

/** A live Machine of Cluster w1 that names `nodeName`. */
export function machineRead(
  nodeName: string | undefined,
  changes: Record<string, string> = {},
  providerID?: string,
  atMs = NOW.monotonicMs,
): Pick<Observations, "subjectMachine"> {
  const raw = {
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Machine",
    metadata: { namespace: "caps", name: "m1", uid: "m-uid", resourceVersion: "1", labels: changes },
    spec: { clusterName: "w1", providerID },
    status: nodeName === undefined ? {} : { nodeRef: { name: nodeName } },
  };
  return { subjectMachine: { found: true, machine: readMachine(raw), atMs } };
}

/** Sets observations of a session that the events of a test do not produce. */
export function know(session: { readonly observations: Observations }, known: Partial<Observations>): void {
  Object.assign(session.observations, known);
}

/** The observations after a status was stored. */
export function observationsAfter(observations: Observations, from: State, to: State): Observations {
  return observe(observations, { type: "StatusStored", from, to, isNodeNamed: false });
}
