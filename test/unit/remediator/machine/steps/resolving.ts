import { ownNodeMessage } from "../../../../../src/remediator/machine/rules/preconditions.ts";
import { machineRead, NOW, OWNER, said, snapshot, TARGET_GONE } from "../snapshots.ts";
import { AWAY, EXCHANGED, NODELESS } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { resolving } from "./situations.ts";

const FACTS = {
  ref: { kind: "FencingTarget", namespace: "x", name: "n1", uid: "t" },
  identity: undefined,
  owner: undefined,
  lastReboot: undefined,
  isPoweredByMark: false,
  takenBack: undefined,
  isInUse: true,
} as const;

/** What a remediation does in Resolving. */
export const RESOLVING_STEPS: readonly Step[] = [
  {
    name: "the finalizer is added before the host is claimed",
    given: resolving({ remediation: { hasFinalizer: false }, observations: { claim: undefined } }),
    expected: "addFinalizer",
  },
  {
    name: "a remediation that has nothing to undo, because its host is held, gets no finalizer",
    given: resolving({
      remediation: { hasFinalizer: false },
      observations: { claim: undefined },
      stopped: "Maintenance",
      other: { admission: undefined },
    }),
    expected: "stay (Maintenance)",
  },
  {
    name: "a host that another remediation owns is waited for",
    given: resolving({
      observations: { claim: { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } },
      other: {
        host: { found: true, facts: { ...FACTS, owner: OWNER } },
      },
    }),
    expected: "stay (HostBusy)",
  },
  {
    name: "a host whose owner has gone is claimed",
    given: resolving({
      observations: { claim: { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs - 300 } },
    }),
    expected: "claimHost",
  },
  {
    name: "a remediation that is not admitted keeps its host and asks again",
    given: resolving({ other: { admission: undefined } }),
    expected: "askForAdmission",
  },
  {
    name: "a remediation whose target has gone leaves the queue",
    given: resolving({ other: { admission: { granted: true }, host: TARGET_GONE } }),
    expected: "withdrawAdmission",
  },
  {
    name: "an agent on the failed node hands its lease over once, and then waits",
    given: resolving({
      other: { runsHere: true },
      status: { conditions: [said("OwnNode", ownNodeMessage(snapshot({ state: "Resolving" })))] },
    }),
    expected: "wait",
  },
  {
    name: "a remediation fails if the agent still runs on its node when the time is over",
    given: resolving({
      isOutOfTime: true,
      other: { runsHere: true },
      status: { conditions: [said("OwnNode", ownNodeMessage(snapshot({ state: "Resolving" })))] },
    }),
    expected: "→ Undoing (OwnNode)",
  },
  {
    name: "a remediation that waits for admission has no deadline",
    given: resolving({
      isOutOfTime: true,
      other: { admission: { granted: false, reason: "WaitingForTurn", message: "full" } },
      status: { conditions: [said("WaitingForTurn", "full")] },
    }),
    expected: "wait",
  },
  {
    name: "a remediation that waits for etcd fails when its time is over",
    given: resolving({
      isOutOfTime: true,
      other: { admission: { granted: false, reason: "ControlPlaneQuorum", message: "two are down" } },
      status: { conditions: [said("ControlPlaneQuorum", "two are down")] },
    }),
    expected: "→ Undoing (ControlPlaneQuorum)",
  },
  {
    name: "the Machine of a remediation is read live before anything else is done",
    given: resolving({ remediation: { hasFinalizer: false }, other: { ...NODELESS, unresolved: true } }),
    expected: "resolveSubject",
  },
  {
    name: "the subject that a Machine names is stored",
    given: resolving({ observations: machineRead("n1"), other: { ...NODELESS, unresolved: true } }),
    expected: "stay (SubjectResolved)",
  },
  {
    name: "the subject of a Machine is not stored while its cluster cannot be identified",
    given: resolving({ observations: machineRead("n1"), other: { ...NODELESS, ...AWAY, unresolved: true } }),
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "a Machine whose cluster has been disconnected for a while is read again",
    given: resolving({
      observations: machineRead("n1", {}, undefined, NOW.monotonicMs - 30_000),
      other: { ...NODELESS, ...AWAY, unresolved: true },
    }),
    expected: "resolveSubject",
  },
  {
    name: "a Machine is refused if its annotation names another node",
    given: resolving({
      remediation: { named: "n2" },
      observations: machineRead("n1"),
      other: { ...NODELESS, unresolved: true },
    }),
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "a remediation of a Machine that is gone ends",
    given: resolving({
      observations: {
        subjectMachine: { found: false, reason: "MachineNotFound", message: "gone", atMs: NOW.monotonicMs },
      },
      other: { ...NODELESS, unresolved: true },
    }),
    expected: "→ Undoing (MachineNotFound)",
  },
  {
    name: "a Machine that could not be read is read again",
    given: resolving({
      observations: {
        subjectMachine: { found: false, reason: "MachineUnreadable", message: "no", atMs: NOW.monotonicMs - 30_000 },
      },
      other: { ...NODELESS, unresolved: true },
    }),
    expected: "resolveSubject",
  },
  {
    name: "no host is claimed while the node's cluster cannot be reached",
    given: resolving({ other: { ...AWAY, admission: undefined } }),
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "no host is claimed while the kubeconfig leads to another cluster",
    given: resolving({ other: { ...EXCHANGED, admission: undefined } }),
    expected: "stay (ClusterExchanged)",
  },
  {
    name: "a remediation that is deleted before it has its finalizer does nothing",
    given: resolving({ remediation: { deleting: true, hasFinalizer: false }, observations: { claim: undefined } }),
    expected: "wait for a change",
  },
  {
    name: "a remediation that is deleted after it has lost its finalizer is undone if it has claimed a host",
    given: resolving({ remediation: { deleting: true, hasFinalizer: false } }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "a remediation that may have inherited a host that is off is undone without a finalizer by the next agent",
    given: resolving({
      remediation: { deleting: true, hasFinalizer: false },
      attempt: { action: "Inherited" },
      observations: { claim: undefined },
    }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "a remediation whose host shows that it has claimed it is undone without a finalizer by the next agent",
    given: resolving({
      remediation: { deleting: true, hasFinalizer: false },
      observations: { claim: undefined },
      other: { host: { found: true, facts: { ...FACTS, owner: { ...OWNER, uid: "uid" } } } },
    }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "a remediation that has claimed a host and lost its finalizer gets it back while the host is held",
    given: resolving({ remediation: { hasFinalizer: false }, stopped: "Maintenance", other: { admission: undefined } }),
    expected: "addFinalizer",
  },
  {
    name: "a remediation that times out while it waits has its finalizer before its undo",
    given: resolving({ remediation: { hasFinalizer: false, timedOut: true }, observations: { claim: undefined } }),
    expected: "addFinalizer",
  },
  {
    name: "no host is claimed for a Node that never existed",
    given: resolving({ status: { node: undefined }, nodeNow: "gone", other: { admission: undefined } }),
    expected: "stay (NodeNotFound)",
  },
  {
    name: "a host is claimed again if another target serves the node now",
    given: resolving({ observations: { claim: { owned: true, targetUid: "another-target-uid" } } }),
    expected: "claimHost",
  },
  {
    name: "no host is claimed while power orders are paused",
    given: resolving({ observations: { claim: undefined }, stopped: "Paused", other: { admission: undefined } }),
    expected: "stay (Paused)",
  },
];
