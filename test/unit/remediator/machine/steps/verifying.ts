import { ownNodeMessage } from "../../../../../src/remediator/machine/rules/preconditions.ts";
import { BACKUP_BYTES_MAX } from "../../../../../src/remediator/machine/node-patches/node-backup.ts";
import { machineRead, node, NOW, READ_OFF, said, snapshot, STALE_LEASE } from "../snapshots.ts";
import {
  AWAY,
  BACKUP,
  bootless,
  CAME_BACK,
  CLUSTER,
  heavyNode,
  joinedLate,
  labelled,
  MACHINE,
  NODELESS,
  READY,
  reprovision,
  tainted,
  TAKEN_BACK,
  membersOfEtcd,
} from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { verifying } from "./situations.ts";

/** What a remediation does in Verifying. */
export const VERIFYING_STEPS: readonly Step[] = [
  {
    name: "a host with another identity is not powered off",
    given: verifying({
      examined: "NotReady",
      observations: {
        identity: { check: { verified: false, reason: "Mismatch", message: "another" }, atMs: NOW.monotonicMs },
      },
    }),
    expected: "→ Undoing (IdentityMismatch)",
  },
  {
    name: "an identity older than five seconds is verified again, together with the node",
    given: verifying({
      examined: "NotReady",
      observations: { identity: { check: { verified: true, message: "" }, atMs: NOW.monotonicMs - 6_000 } },
    }),
    expected: "examine",
  },
  {
    name: "a Ready node is quarantined before its host is powered off",
    given: verifying({ examined: "Ready", identity: "verified" }),
    expected: "quarantine",
  },
  {
    name: "the intent to power off is stored before the order is sent",
    given: verifying({ examined: "NotReady", identity: "verified" }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "maintenance before the first order sends the remediation back to the queue",
    given: verifying({ observations: { marksCleared: true }, stopped: "Maintenance" }),
    expected: "→ Resolving (Maintenance)",
  },
  {
    name: "maintenance keeps a remediation in place if its host may be off",
    given: verifying({
      attempt: { action: "ForceOff", sent: true },
      observations: { marksCleared: true },
      stopped: "Maintenance",
    }),
    expected: "stay (Maintenance)",
  },
  {
    name: "a node that has become Ready again by itself is not powered off",
    given: verifying({
      examined: "Ready",
      identity: "verified",
      observations: { marksCleared: true },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
    }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "a node that was Ready when the remediation began is powered off",
    given: verifying({
      examined: "Ready",
      identity: "verified",
      observations: { marksCleared: true, quarantined: true },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: true } },
    }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a node that is Ready in the boot that an earlier order should have ended is powered off",
    given: verifying({
      attempt: { action: "ForceOff", sent: true },
      examined: "Ready",
      identity: "verified",
      observations: { marksCleared: true, quarantined: true },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
    }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a node that came back after its attempt had failed is left alone if its host reads On",
    given: verifying({
      attempt: { action: "On", sent: true, done: true },
      read: "On",
      observations: { examined: { node: node({ ready: "True", bootID: "new-boot" }) }, marksCleared: true },
    }),
    expected: "→ Restoring (BackLate)",
  },
  {
    name: "the power is read before a late return is believed",
    given: verifying({
      attempt: { action: "On", sent: true, done: true },
      observations: { examined: { node: node({ ready: "True", bootID: "new-boot" }) }, marksCleared: true },
    }),
    expected: "readPower",
  },
  {
    name: "a late return is not believed while the host reads Off",
    given: verifying({
      attempt: { action: "On", sent: true },
      identity: "verified",
      observations: {
        examined: { node: node({ ready: "True", bootID: "new-boot" }) },
        power: { ...READ_OFF, offReads: 2 },
        quarantined: true,
      },
    }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a Node that is too large to save is not powered off to be deleted",
    given: verifying({
      strategy: { workloadRelease: "DeleteNode" },
      identity: "verified",
      observations: { examined: { node: heavyNode(BACKUP_BYTES_MAX) } },
    }),
    expected: "→ Undoing (BackupTooLarge)",
  },
  {
    name: "a Node that is too large to save is powered off if it need not be deleted",
    given: verifying({ identity: "verified", observations: { examined: { node: heavyNode(BACKUP_BYTES_MAX) } } }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a Node with as many annotations as the API server allows can be saved",
    given: verifying({
      strategy: { workloadRelease: "DeleteNode" },
      identity: "verified",
      observations: { examined: { node: heavyNode(262_144) } },
    }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a control plane node is never reprovisioned",
    given: verifying({
      attempt: { kind: "Reprovision" },
      strategy: { type: "Reprovision", requireReboot: false },
      identity: "verified",
      observations: { examined: { node: labelled("node-role.kubernetes.io/control-plane") } },
    }),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a host is not reprovisioned without a proven reboot of this outage",
    given: verifying({
      attempt: { kind: "Reprovision" },
      strategy: { type: "Reprovision" },
      examined: "NotReady",
      identity: "verified",
    }),
    expected: "→ Undoing (RebootRequired)",
  },
  {
    name: "a host that another Node claims is not powered off",
    given: verifying({ identity: "verified", observations: { examined: { node: node(), dispute: "both" } } }),
    expected: "→ Undoing (Ambiguous)",
  },
  {
    name: "a node that is back by itself ends the remediation although another Node claims its host",
    given: verifying({
      status: { node: { name: "n1", wasReady: false } },
      identity: "verified",
      observations: { examined: { node: node({ ready: "True" }), dispute: "both" }, marksCleared: true },
    }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "a remediation that has sent no order goes back to wait for the node's cluster",
    given: verifying({ other: AWAY }),
    expected: "→ Resolving (ClusterUnreachable)",
  },
  {
    name: "a remediation that has sent an order waits for the node's cluster in place",
    given: verifying({ attempt: { action: "On", done: true }, other: AWAY }),
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "the node that a Machine has named meanwhile is stored and examined",
    given: verifying({
      identity: "verified",
      observations: { examined: { node: undefined }, ...machineRead("n7") },
      other: NODELESS,
    }),
    expected: "stay (NodeNamed)",
  },
  {
    name: "a node with another providerID than its Machine is not powered off",
    given: verifying({
      identity: "verified",
      observations: {
        examined: { node: { ...node(), spec: { providerID: "metal3://others/h1/m1" } } },
        ...machineRead("n1", {}, "metal3://caps/h1/m1"),
      },
    }),
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "the power-off waits until the Machine of a workload cluster can be read",
    given: verifying({
      examined: "NotReady",
      identity: "verified",
      observations: {
        subjectMachine: { found: false, reason: "MachineUnreadable", message: "forbidden", atMs: NOW.monotonicMs },
      },
      other: { subject: { nodeName: "n1", cluster: CLUSTER, machine: MACHINE } },
    }),
    expected: "stay (MachineUnreadable)",
  },
  {
    name: "the host of a Machine that is gone is not powered off",
    given: verifying({
      identity: "verified",
      observations: {
        examined: { node: undefined },
        subjectMachine: { found: false, reason: "MachineNotFound", message: "gone", atMs: NOW.monotonicMs },
      },
      other: NODELESS,
    }),
    expected: "→ Undoing (MachineNotFound)",
  },
  {
    name: "a Machine without a node is powered off once its host is verified",
    given: verifying({
      identity: "verified",
      observations: { examined: { node: undefined }, ...machineRead(undefined) },
      other: NODELESS,
    }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a Machine without a node is not powered off while its host is not verified",
    given: verifying({
      observations: {
        examined: { node: undefined },
        identity: { check: { verified: false, reason: "Mismatch", message: "another" }, atMs: NOW.monotonicMs },
        ...machineRead(undefined),
      },
      other: NODELESS,
    }),
    expected: "→ Undoing (IdentityMismatch)",
  },
  {
    name: "a Machine of the control plane without a node is not reprovisioned",
    given: verifying({
      attempt: { kind: "Reprovision" },
      strategy: { type: "Escalate" },
      identity: "verified",
      observations: {
        examined: { node: undefined },
        ...machineRead(undefined, { "cluster.x-k8s.io/control-plane": "" }),
      },
      other: NODELESS,
    }),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a taint that an earlier remediation left is removed before the order",
    given: verifying({ identity: "verified", observations: { examined: { node: tainted() } } }),
    expected: "clearMarks",
  },
  {
    name: "a taint that an earlier remediation left is removed only once, though the last read still shows it",
    given: verifying({ identity: "verified", observations: { examined: { node: tainted() }, marksCleared: true } }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a node is examined before anything about it is refused",
    given: verifying({
      attempt: { kind: "Reprovision" },
      strategy: { type: "Reprovision", requireReboot: false },
      identity: "verified",
      nodeNow: "gone",
    }),
    expected: "examine",
  },
  {
    name: "a Node that is too large to save is not reprovisioned",
    given: verifying({
      attempt: { kind: "Reprovision" },
      strategy: { type: "Reprovision", requireReboot: false },
      identity: "verified",
      observations: { examined: { node: heavyNode(BACKUP_BYTES_MAX) } },
    }),
    expected: "→ Undoing (BackupTooLarge)",
  },
  {
    name: "the marks of a node that came back are removed before that is reported",
    given: verifying({ examined: "Ready", identity: "verified", status: CAME_BACK }),
    expected: "clearMarks",
  },
  {
    name: "a new boot before any order does not count as a return of a node that was Ready from the start",
    given: verifying({
      identity: "verified",
      observations: { examined: { node: node({ ready: "True", bootID: "new-boot" }) } },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: true } },
    }),
    expected: "quarantine",
  },
  {
    name: "a node without a boot ID does not count as back after an order",
    given: verifying({
      attempt: { action: "On", done: true },
      identity: "verified",
      observations: { examined: { node: { ...bootless(), status: { ...bootless().status, conditions: READY } } } },
    }),
    expected: "quarantine",
  },
  {
    name: "a node that came back while its remediation waited for the host is not powered off",
    given: verifying({
      attempt: { action: "Inherited" },
      examined: "Ready",
      identity: "verified",
      read: "On",
      observations: { marksCleared: true },
      status: CAME_BACK,
    }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "a lease renewal that may have been on its way at the power-on does not bring a Machine without a node back",
    given: joinedLate(5_000),
    expected: "quarantine",
  },
  {
    name: "a later lease renewal may bring a Machine without a node back, so the power is read",
    given: joinedLate(30_000),
    expected: "readPower",
  },
  {
    name: "a lease renewal does not bring back a node without a boot ID that belongs to no Machine",
    given: { ...joinedLate(30_000), other: {} },
    expected: "quarantine",
  },
  {
    name: "a lease renewal does not bring back a node without a boot ID whose Machine had named it",
    given: { ...joinedLate(30_000), status: { node: { name: "n1", uid: "node-uid" } } },
    expected: "quarantine",
  },
  {
    name: "a node that came back before a further power-off is left alone once its host reads On",
    given: { ...joinedLate(30_000), attempt: { action: "ForceOff", done: true, actionAtMs: NOW.epochMs - 30_000 } },
    expected: "readPower",
  },
  {
    name: "an agent on the failed node that has announced the hand-over of its lease waits",
    given: verifying({
      examined: "NotReady",
      other: { runsHere: true },
      status: {
        conditions: [said("OwnNode", ownNodeMessage(snapshot({ state: "Verifying" })))],
      },
    }),
    expected: "wait",
  },
  {
    name: "a Node that is gone is not reprovisioned if it may have been a control plane node",
    given: reprovision({}),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a Node that was saved with a control plane role is not reprovisioned",
    given: reprovision({ backup: { nodeUID: "node-uid", labels: { "node-role.kubernetes.io/control-plane": "" } } }),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a Node that was saved without a control plane role is reprovisioned",
    given: reprovision({ backup: BACKUP.status }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "no order is sent to a host that its operator powers now",
    given: verifying({ read: "Off×2", other: TAKEN_BACK }),
    expected: "→ Undoing (HostAttached)",
  },
  {
    name: "a Machine without a providerID has no Node that is provably its own",
    given: verifying({
      identity: "verified",
      observations: {
        examined: { node: { ...node(), spec: { providerID: "a" } } },
        ...machineRead("n1", {}, undefined),
      },
    }),
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "a Node without a providerID is not provably the Node of its Machine",
    given: verifying({
      identity: "verified",
      observations: { examined: { node: { ...node(), spec: {} } }, ...machineRead("n1", {}, "a") },
    }),
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "a remediation fails if etcd needs its node until the time is over",
    given: verifying({
      identity: "verified",
      examined: "NotReady",
      isOutOfTime: true,
      strategy: { retryLimit: 0 },
      observations: { members: membersOfEtcd(false) },
    }),
    expected: "→ Undoing (ControlPlaneQuorum)",
  },
  {
    name: "a node with the providerID of its Machine is powered off",
    given: verifying({
      identity: "verified",
      observations: {
        examined: { node: { ...node(), spec: { providerID: "metal3://caps/h1/m1" } } },
        ...machineRead("n1", {}, "metal3://caps/h1/m1"),
      },
    }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a node's own clock does not bring a Machine without a node back after a power-on",
    given: {
      ...joinedLate(30_000),
      observations: { ...joinedLate(30_000).observations, lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 1_000 } },
    },
    expected: "quarantine",
  },
];
