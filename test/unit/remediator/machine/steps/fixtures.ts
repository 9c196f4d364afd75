import type { Node } from "../../../../../src/api/kubernetes/core.ts";
import { FENCED, OUT_OF_SERVICE } from "../../../../../src/api/kubernetes/taints.ts";
import type { Observations, SentOrder } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import { node, NOW, ordered, PROVEN, READ_ON, REFUSED, said, snapshot, STALE_LEASE, VERIFIED } from "../snapshots.ts";
import type { SnapshotChanges } from "../snapshots.ts";

// Hosts, nodes, Machines and clusters for steps in several states.

/** The power is unknown, because a device does not accept the account. */
export const UNKNOWN = {
  ...READ_ON,
  last: { state: "Unknown", raw: "not accepted", atMs: NOW.monotonicMs - 100 },
} as const;

/** An order whose connection broke. */
export const CUT_OFF: SentOrder = {
  ...ordered("Rejected", 3_000),
  problem: { reason: "BMCUnreachable", message: "the other side closed", final: false },
};

/** An order that a gateway answered. */
export const CUT_OFF_BY_GATEWAY: SentOrder = {
  ...ordered("Rejected", 3_000),
  problem: { reason: "BMCBusy", message: "503 Service Unavailable", final: false },
};

/** A node that has come back in its old boot while its BMC refuses or does not answer the power-off. */
export function cameBack(observations: Partial<Observations>): SnapshotChanges {
  return {
    state: "PoweringOff",
    attempt: { sent: false },
    observations: { ...REFUSED, marksCleared: true, ...observations },
    other: { node: node({ ready: "True" }) },
    status: CAME_BACK,
  };
}

/** One of several devices is off, and the host runs. */
export const HALF_ON: Observations["power"] = {
  ...READ_ON,
  last: { state: "Off", raw: "Off", atMs: NOW.monotonicMs - 100, runs: true },
};

/** All outlets are off, and no BMC answers. */
export const UNSUPPLIED = {
  ...READ_ON,
  last: { state: "Off", raw: "off", atMs: NOW.monotonicMs - 100, runs: false, bySupply: true, unsupplied: true },
} as const;

/** All outlets are on, and no BMC answers. */
export const SUPPLIED = {
  ...READ_ON,
  last: { state: "Unknown", raw: "on", atMs: NOW.monotonicMs - 100, runs: false, supplied: true },
} as const;

/** Three members of etcd, with the one on the node. @param up whether the third one is up. */
export function membersOfEtcd(up: boolean): Observations["members"] {
  return [
    { node: "n1", up: true },
    { node: "n2", up: true },
    { node: "n3", up },
  ];
}

/** A Node with an annotation of this length. */
export function heavyNode(length: number): Node {
  const light = node();
  return { ...light, metadata: { ...light.metadata, annotations: { "example.com/note": "x".repeat(length) } } };
}

export function labelled(label: string): Node {
  const plain = node();
  return { ...plain, metadata: { ...plain.metadata, labels: { [label]: "" } } };
}

export const TARGET = { kind: "FencingTarget", namespace: "ironfence", name: "n1", uid: "target-uid" };

export const AWAY = {
  clusterProblem: {
    reason: "ClusterUnreachable",
    message: "cluster caps/w1 cannot be reached: Unreachable: no connection",
  },
} as const;

export const { host: OWN } = snapshot({ state: "Verifying" });

export const TAKEN_BACK = OWN.found ? { host: { ...OWN, facts: { ...OWN.facts, takenBack: "its operator" } } } : {};

export const UNUSED = OWN.found ? { host: { ...OWN, facts: { ...OWN.facts, isInUse: false } } } : {};

export const SAID_AWAY = { conditions: [said("ClusterUnreachable", AWAY.clusterProblem.message)] };

/** The API server refuses the call that puts the quarantine on. */
export const REFUSED_CALL = {
  call: "swapMarks",
  sinceMs: 0,
  message: "forbidden",
  refused: true,
  failures: 1,
  retryAtMs: NOW.monotonicMs,
} as const;

export const OURS: Observations["taint"] = { attemptId: "a1", found: "Ours" };

/** Nothing is left on the node. */
export const DRAINED = { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 1, isReported: true };

export const SAID_PAUSED = { conditions: [said("Paused", "by a test")] };

export const clusterChecked = (gone: boolean): Pick<Observations, "cluster"> => ({
  cluster: { gone, atMs: NOW.monotonicMs },
});

export const EXCHANGED = {
  clusterProblem: { reason: "ClusterExchanged", message: "Secret caps/w1-kubeconfig leads to another cluster" },
} as const;

export const MACHINE = {
  apiVersion: "cluster.x-k8s.io/v1beta2",
  kind: "Machine",
  namespace: "caps",
  name: "m1",
  uid: "m-uid",
};

export const CLUSTER = { namespace: "caps", name: "w1" };

/** A remediation of a Machine that has no node. */
export const NODELESS = {
  nodeName: "of Machine caps/m1",
  subject: { nodeName: undefined, cluster: CLUSTER, machine: MACHINE },
  node: undefined,
};

export const SPENT = { verdict: "Failed", reason: "RejoinTimeout", message: "not back" } as const;

export const AGO_2S: Observations["power"] = { ...PROVEN, offAtMs: NOW.monotonicMs - 2_000 };

export const CAME_BACK: NonNullable<SnapshotChanges["status"]> = {
  node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false },
};

export const BACKUP = { status: { nodeUID: "node-uid", labels: { rack: "r7" } }, resourceVersion: "1" };

export const RENEWED: NonNullable<Observations["lease"]> = { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 };

export function readOff(agoMs: number): NonNullable<Observations["power"]["last"]> {
  return { state: "Off", raw: "Off", atMs: NOW.monotonicMs - agoMs };
}

export const READY = node({ ready: "True" }).status.conditions ?? [];

/** A Node that does not report in which boot it is. */
export function bootless(): Node {
  const { nodeInfo: _nodeInfo, ...status } = node().status;
  return { ...node(), status };
}

/** A Node with our taint. */
export function tainted(): Node {
  return node({ taints: [OUT_OF_SERVICE, { ...FENCED, value: "uid" }] });
}

/** A Machine that had no node before. Its new node renewed its lease a second ago. */
export function joinedLate(afterOnMs: number): SnapshotChanges {
  return {
    state: "Verifying",
    attempt: { action: "On", done: true, actionAtMs: NOW.epochMs - afterOnMs },
    observations: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED, lease: RENEWED },
    status: { node: { name: "n1" } },
    other: { subject: { nodeName: "n1", cluster: undefined, machine: MACHINE } },
  };
}

/** A reprovision of a Node that is gone. */
export function reprovision(status: NonNullable<SnapshotChanges["status"]>): SnapshotChanges {
  return {
    state: "Verifying",
    attempt: { kind: "Reprovision" },
    strategy: { type: "Reprovision", requireReboot: false },
    observations: { examined: { node: undefined }, identity: VERIFIED },
    status,
  };
}
