import { localNode } from "../../../src/remediator/subject.ts";
import type { Seen } from "../../../src/remediator/seen.ts";
import type { SnapshotChanges } from "./snapshots.ts";
import {
  machineSeen,
  NO_SUCCESSOR,
  node,
  NOW,
  PROVEN,
  READ_OFF,
  REFUSED,
  said,
  snapshot,
  UNDOING,
  VERIFIED,
} from "./snapshots.ts";

const TARGET = { kind: "FencingTarget", namespace: "ironfence", name: "n1", uid: "target-uid" };

const AWAY = {
  away: { reason: "ClusterUnreachable", message: "cluster caps/w1 cannot be reached: Unreachable: no connection" },
} as const;
const { host: OWN } = snapshot({ state: "Verifying" });
const TAKEN_BACK = OWN.found ? { host: { ...OWN, facts: { ...OWN.facts, takenBack: "its operator" } } } : {};
const UNUSED = OWN.found ? { host: { ...OWN, facts: { ...OWN.facts, isInUse: false } } } : {};
const SAID_AWAY = { conditions: [said("ClusterUnreachable", AWAY.away.message)] };
const clusterSeen = (gone: boolean): Pick<Seen, "cluster"> => ({ cluster: { gone, atMs: NOW.monotonicMs } });
const EXCHANGED = {
  away: { reason: "ClusterExchanged", message: "Secret caps/w1-kubeconfig leads to another cluster" },
} as const;
const MACHINE = {
  apiVersion: "cluster.x-k8s.io/v1beta2",
  kind: "Machine",
  namespace: "caps",
  name: "m1",
  uid: "m-uid",
};
const CLUSTER = { namespace: "caps", name: "w1" };

/** A remediation of a Machine that has no node. */
const NODELESS = {
  nodeName: "of Machine caps/m1",
  subject: { nodeName: undefined, cluster: CLUSTER, machine: MACHINE },
  node: undefined,
};

const SPENT = { verdict: "Failed", reason: "RejoinTimeout", message: "not back" } as const;

/** Ends of a remediation that was asked for by a Machine of Cluster API. */
const HANDED_OVER: readonly { name: string; changes: Partial<SnapshotChanges>; told: boolean }[] = [
  {
    name: "a Machine whose host was proven off, and whose node is not back, is left to its owner",
    changes: { status: { target: TARGET, provenReboots: 2 } },
    told: true,
  },
  {
    name: "once",
    changes: { status: { target: TARGET, provenReboots: 2 }, seen: { handedToOwner: true } },
    told: false,
  },
  {
    name: "not where the API server refuses it: the verdict does not wait for that",
    changes: {
      status: { target: TARGET, provenReboots: 2 },
      seen: {
        kube: {
          call: "taint",
          sinceMs: 0,
          message: "forbidden",
          refused: true,
          failures: 1,
          retryAtMs: NOW.monotonicMs,
        },
      },
    },
    told: false,
  },
  {
    name: "not where no Off was proven: a BMC that is away is no reason to install a host anew",
    changes: { status: { target: TARGET } },
    told: false,
  },
  {
    name: "but where that proof is waived",
    changes: { status: { target: TARGET }, plan: { requireReboot: false } },
    told: true,
  },
  {
    name: "not where the wrong host was fenced",
    changes: { status: { target: TARGET, provenReboots: 1 }, outcome: { ...SPENT, reason: "WrongHost" } },
    told: false,
  },
  {
    name: "not by a remediation that was given up by who asked",
    changes: { status: { target: TARGET, provenReboots: 1 }, outcome: { ...SPENT, verdict: "TimedOut" } },
    told: false,
  },
  {
    name: "not by the child of a request, which tells by itself",
    changes: { status: { target: TARGET, provenReboots: 1 }, remediation: { isRequested: true } },
    told: false,
  },
  {
    name: "not where a node alone was named",
    changes: { status: { target: TARGET, provenReboots: 1 }, other: { subject: localNode("n1") } },
    told: false,
  },
  {
    name: "not a Machine of OKD, which knows no such owner",
    changes: {
      status: { target: TARGET, provenReboots: 1 },
      other: {
        subject: {
          nodeName: "n1",
          cluster: undefined,
          machine: { ...MACHINE, apiVersion: "machine.openshift.io/v1beta1" },
        },
      },
    },
    told: false,
  },
];

/** Steps of remediations whose node lies in another cluster, or that a Machine asked for, and of hosts that somebody else may have. */
export const MACHINE_STEPS: readonly { name: string; changes: SnapshotChanges; expected: string }[] = [
  {
    name: "whom a Machine's remediation is about is read live before anything else",
    changes: {
      state: "Resolving",
      remediation: { hasFinalizer: false },
      other: { ...NODELESS, unresolved: true },
    },
    expected: "resolveSubject",
  },
  {
    name: "and stored",
    changes: {
      state: "Resolving",
      seen: machineSeen("n1"),
      other: { ...NODELESS, unresolved: true },
    },
    expected: "stay (SubjectResolved)",
  },
  {
    name: "but not before it can be told which cluster that is",
    changes: {
      state: "Resolving",
      seen: machineSeen("n1"),
      other: { ...NODELESS, ...AWAY, unresolved: true },
    },
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "a Machine whose cluster has been away for a while is read again",
    changes: {
      state: "Resolving",
      seen: machineSeen("n1", {}, undefined, NOW.monotonicMs - 30_000),
      other: { ...NODELESS, ...AWAY, unresolved: true },
    },
    expected: "resolveSubject",
  },
  {
    name: "a Machine that is another node than the one that the annotation names is believed neither",
    changes: {
      state: "Resolving",
      remediation: { named: "n2" },
      seen: machineSeen("n1"),
      other: { ...NODELESS, unresolved: true },
    },
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "a Machine that is gone is not waited for",
    changes: {
      state: "Resolving",
      seen: { subjectMachine: { found: false, reason: "MachineNotFound", message: "gone", atMs: NOW.monotonicMs } },
      other: { ...NODELESS, unresolved: true },
    },
    expected: "→ Undoing (MachineNotFound)",
  },
  {
    name: "a Machine that may not be read is read again",
    changes: {
      state: "Resolving",
      seen: {
        subjectMachine: { found: false, reason: "MachineUnreadable", message: "no", atMs: NOW.monotonicMs - 30_000 },
      },
      other: { ...NODELESS, unresolved: true },
    },
    expected: "resolveSubject",
  },
  {
    name: "a host is not powered off that another Node says that it runs on",
    changes: { state: "Verifying", seen: { examined: { node: node(), dispute: "both" }, identity: VERIFIED } },
    expected: "→ Undoing (Ambiguous)",
  },
  {
    name: "nor once more",
    changes: { state: "PoweringOff", seen: { ...REFUSED, examined: { node: node(), dispute: "both" } } },
    expected: "→ Undoing (Ambiguous)",
  },
  {
    name: "but where its own node is back by itself that is the end of it",
    changes: {
      state: "Verifying",
      status: { node: { name: "n1", wasReady: false } },
      seen: { examined: { node: node({ ready: "True" }), dispute: "both" }, identity: VERIFIED, marksCleared: true },
    },
    expected: "→ Restoring (Recovered)",
  },
  ...(["Verifying", "PoweringOff", "Releasing", "PoweringOn"] as const).map((state) => ({
    name: `no further order is sent to a host that somebody else powers by now: ${state}`,
    changes: { state, seen: { power: PROVEN }, other: TAKEN_BACK },
    expected: "→ Undoing (HostAttached)",
  })),
  {
    name: "what is left to do to its node is done",
    changes: { state: "Rejoining", other: TAKEN_BACK },
    expected: "closeDevices",
  },
  {
    name: "an undo does not power a host on that somebody else powers by now",
    changes: {
      state: "Undoing",
      seen: {
        ...UNDOING,
        identity: VERIFIED,
        power: READ_OFF,
      },
      status: { target: TARGET },
      other: TAKEN_BACK,
    },
    expected: "readWhole",
  },
  {
    name: "and waits no longer for that than it may take, though it is being deleted",
    changes: {
      state: "Undoing",
      remediation: { deleting: true },
      seen: {
        ...UNDOING,
        identity: VERIFIED,
        power: READ_OFF,
      },
      status: { target: TARGET },
      other: { ...TAKEN_BACK, remainingMs: 0 },
    },
    expected: "clearMarks",
  },
  {
    name: "no host is taken while the node's cluster is away",
    changes: { state: "Resolving", other: { ...AWAY, turn: undefined } },
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "no host is taken while the kubeconfig leads to another cluster",
    changes: { state: "Resolving", other: { ...EXCHANGED, turn: undefined } },
    expected: "stay (ClusterExchanged)",
  },
  {
    name: "no power-off is sent anew while the kubeconfig leads to another cluster",
    changes: { state: "PoweringOff", seen: REFUSED, other: EXCHANGED },
    expected: "stay (ClusterExchanged)",
  },
  {
    name: "no mark is looked for in another cluster that the kubeconfig leads to",
    changes: { state: "Undoing", status: { target: TARGET }, other: EXCHANGED },
    expected: "stay (ClusterExchanged)",
  },
  {
    name: "the time of a state that waited for the kubeconfig to be put right begins anew",
    changes: {
      state: "Rejoining",
      status: { conditions: [said("ClusterExchanged", "away")] },
      other: { remainingMs: 0 },
    },
    expected: "stay (ClusterReached)",
  },
  {
    name: "no Machine is deleted while the node's cluster is away",
    changes: {
      state: "Provisioning",
      plan: { via: "MachineDeletion" },
      attempt: { kind: "Reprovision" },
      status: SAID_AWAY,
      seen: clusterSeen(false),
      other: AWAY,
    },
    expected: "wait",
  },
  {
    name: "while a cluster is away it is looked whether its Cluster is there",
    changes: { state: "Rejoining", status: SAID_AWAY, other: AWAY },
    expected: "findCluster",
  },
  {
    name: "and once it is, not again for a while",
    changes: { state: "Rejoining", status: SAID_AWAY, seen: clusterSeen(false), other: AWAY },
    expected: "wait",
  },
  {
    name: "a Cluster that was deleted is waited for no longer",
    changes: { state: "Rejoining", status: SAID_AWAY, seen: clusterSeen(true), other: AWAY },
    expected: "→ Undoing (ClusterGone)",
  },
  {
    name: "and changes no verdict",
    changes: { state: "Failed", remediation: { hasFinalizer: false }, seen: clusterSeen(true), other: AWAY },
    expected: "wait for a change",
  },
  {
    name: "but one that can be reached is worked in, whatever was seen before",
    changes: { state: "Rejoining", seen: { ...clusterSeen(true), devicesClosed: true } },
    expected: "wait",
  },
  {
    name: "of a Cluster that was deleted no host is powered on whose taint may stand",
    changes: { state: "Undoing", status: { target: TARGET }, seen: clusterSeen(true), other: AWAY },
    expected: "closeDevices",
  },
  {
    name: "unless nobody uses the host any more",
    changes: {
      state: "Undoing",
      status: { target: TARGET },
      seen: { ...clusterSeen(true), identity: VERIFIED, power: READ_OFF, successor: NO_SUCCESSOR },
      other: { ...AWAY, ...UNUSED },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "of a Cluster that was deleted a host is powered on whose taint is off",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false },
      status: { target: TARGET },
      seen: { ...clusterSeen(true), identity: VERIFIED, power: READ_OFF, successor: NO_SUCCESSOR },
      other: AWAY,
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "before any order a remediation goes back to wait for the node's cluster",
    changes: { state: "Verifying", other: AWAY },
    expected: "→ Resolving (ClusterUnreachable)",
  },
  {
    name: "after an order it waits where it is",
    changes: { state: "Verifying", attempt: { action: "On", done: true }, other: AWAY },
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "no power-off is sent anew while the node's cluster is away",
    changes: { state: "PoweringOff", seen: REFUSED, other: AWAY },
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "the power of a fenced host is read while the node's cluster is away",
    changes: {
      state: "Releasing",
      seen: { power: { ...PROVEN, offAtMs: NOW.monotonicMs - 2_000 }, taint: { attemptId: "a1", found: "Ours" } },
      other: AWAY,
    },
    expected: "readPower",
  },
  {
    name: "nothing is released while the node's cluster is away",
    changes: {
      state: "Releasing",
      seen: { power: PROVEN, taint: { attemptId: "a1", found: "Ours" } },
      other: AWAY,
    },
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "a host whose release has ended is powered on although the node's cluster is away",
    changes: { state: "PoweringOn", seen: { identity: VERIFIED }, other: AWAY },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo powers no host on whose taint may stand while the node's cluster is away",
    changes: {
      state: "Undoing",
      seen: { identity: VERIFIED, power: READ_OFF },
      status: { target: TARGET },
      other: AWAY,
    },
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "an undo powers a host on whose taint is known to be off although the node's cluster is away",
    changes: {
      state: "Undoing",
      seen: {
        ...UNDOING,
        identity: VERIFIED,
        power: READ_OFF,
      },
      status: { target: TARGET },
      other: AWAY,
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "a remediation that had begun nothing is let go although the node's cluster is away",
    changes: {
      state: "Undoing",
      attempt: { action: "None" },
      seen: { devicesClosed: true, hostReleased: true },
      other: AWAY,
    },
    expected: "→ Failed (Failed)",
  },
  {
    name: "a remediation is aborted while the node's cluster is away",
    changes: { state: "Rejoining", remediation: { deleting: true }, other: AWAY },
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "the time of a state that waited for the node's cluster begins anew",
    changes: {
      state: "Rejoining",
      status: { conditions: [said("ClusterUnreachable", "away")] },
      other: { remainingMs: 0 },
    },
    expected: "stay (ClusterReached)",
  },
  {
    name: "a Machine that has named its node meanwhile is looked at anew with it",
    changes: {
      state: "Verifying",
      seen: { examined: { node: undefined }, identity: VERIFIED, ...machineSeen("n7") },
      other: NODELESS,
    },
    expected: "stay (NodeNamed)",
  },
  {
    name: "a node with another providerID than its Machine is a namesake, and nothing is powered off for it",
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: { ...node(), spec: { providerID: "metal3://others/h1/m1" } } },
        identity: VERIFIED,
        ...machineSeen("n1", {}, "metal3://caps/h1/m1"),
      },
    },
    expected: "→ Undoing (SubjectMismatch)",
  },
  ...[
    { name: "a Machine without a providerID has no Node that is its own but by name", named: undefined, node: "a" },
    { name: "a Node without a providerID is its Machine's by nothing but its name", named: "a", node: undefined },
  ].map(({ name, named, node: of }): { name: string; changes: SnapshotChanges; expected: string } => ({
    name,
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: { ...node(), spec: of === undefined ? {} : { providerID: of } } },
        identity: VERIFIED,
        ...machineSeen("n1", {}, named),
      },
    },
    expected: "→ Undoing (SubjectMismatch)",
  })),
  {
    name: "a Machine of a workload cluster that may not be read is waited for before the power-off",
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: node() },
        identity: VERIFIED,
        subjectMachine: { found: false, reason: "MachineUnreadable", message: "forbidden", atMs: NOW.monotonicMs },
      },
      other: { subject: { nodeName: "n1", cluster: CLUSTER, machine: MACHINE } },
    },
    expected: "stay (MachineUnreadable)",
  },
  {
    name: "a Machine that is gone before the power-off is left alone",
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: undefined },
        identity: VERIFIED,
        subjectMachine: { found: false, reason: "MachineNotFound", message: "gone", atMs: NOW.monotonicMs },
      },
      other: NODELESS,
    },
    expected: "→ Undoing (MachineNotFound)",
  },
  {
    name: "a Machine without a node is powered off once its host is verified",
    changes: {
      state: "Verifying",
      seen: { examined: { node: undefined }, identity: VERIFIED, ...machineSeen(undefined) },
      other: NODELESS,
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a Machine without a node whose host is not verified is not",
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: undefined },
        identity: { verdict: { verified: false, reason: "Mismatch", message: "another" }, atMs: NOW.monotonicMs },
        ...machineSeen(undefined),
      },
      other: NODELESS,
    },
    expected: "→ Undoing (IdentityMismatch)",
  },
  {
    name: "a Machine of the control plane without a node is not reprovisioned",
    changes: {
      state: "Verifying",
      attempt: { kind: "Reprovision" },
      plan: { type: "Escalate" },
      seen: {
        examined: { node: undefined },
        identity: VERIFIED,
        ...machineSeen(undefined, { "cluster.x-k8s.io/control-plane": "" }),
      },
      other: NODELESS,
    },
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "the node that a Machine has become after the power-on is taken on record",
    changes: { state: "Rejoining", seen: { devicesClosed: true, ...machineSeen("n7") }, other: NODELESS },
    expected: "stay (NodeNamed)",
  },
  ...HANDED_OVER.map(({ name, changes, told }) => ({
    name,
    changes: {
      ...changes,
      state: "Undoing" as const,
      attempt: { action: "On" as const, done: true, offConfirmedAtMs: undefined },
      seen: {
        taintCleared: true,
        marksCleared: true,
        devicesClosed: true,
        hostReleased: true,
        ...changes.seen,
      },
      other: {
        subject: { nodeName: "n1", cluster: CLUSTER, machine: MACHINE },
        ...changes.other,
      },
    },
    expected: told ? "handToOwner" : "→ Failed (Failed)",
  })),
];
