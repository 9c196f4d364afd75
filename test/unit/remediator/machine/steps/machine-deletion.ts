import type { BareMetalRemediationStatus } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Condition } from "../../../../../src/api/schema/meta.ts";
import type {
  MachineReport,
  ReplacementReport,
} from "../../../../../src/remediator/machine/model/facts/reprovision.ts";
import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import type { SnapshotChanges } from "../snapshots.ts";
import type { Step } from "./situations.ts";
import { node, NOW, READ_ON, snapshot, VERIFIED } from "../snapshots.ts";
import { AT, OFF, proven } from "./reprovision-fixtures.ts";

const MACHINE = {
  apiVersion: "cluster.x-k8s.io/v1beta2",
  kind: "Machine",
  namespace: "ns",
  name: "m",
  uid: "machine-uid",
};

const OWNER = { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "MachineSet", name: "set", uid: "set-uid" };

const PRESENT: MachineReport = {
  state: "Present",
  deletedAt: undefined,
  nodeName: "n1",
  isControlPlane: false,
  owner: OWNER,
  isReplaced: true,
  externallyProvisioned: false,
  atMs: AT,
};

const DELETING: MachineReport = { ...PRESENT, state: "Deleting", deletedAt: "2026-01-01T11:59:59Z" };

const NOT_YET: ReplacementReport = { nodeName: undefined, mayLetGo: false, atMs: AT };

const ANNOUNCED: Condition = {
  type: "PermanentNodeDeletionExpected",
  status: "True",
  reason: "MachineDeletionExpected",
  message: "",
  lastTransitionTime: "2026-01-01T11:00:00Z",
};

function replacing(
  state: "Verifying" | "Provisioning",
  observations: Partial<Observations>,
  more: {
    status?: BareMetalRemediationStatus;
    other?: SnapshotChanges["other"];
    strategy?: SnapshotChanges["strategy"];
  } = {},
): SnapshotChanges {
  const base =
    state === "Verifying"
      ? { examined: { node: node() }, identity: VERIFIED, replacementAdmission: { granted: true } as const }
      : OFF;
  return {
    state,
    attempt: { kind: "Reprovision" },
    strategy: { type: "Reprovision", via: "MachineDeletion", ...more.strategy },
    observations: { ...base, ...observations },
    status: { machine: MACHINE, ...more.status },
    other: { ...proven("FencingTarget"), ...more.other },
  };
}

const DELETED = { replacement: { owner: OWNER, deletedAt: "2026-01-01T11:59:59Z" } };

const EXPECTED = { replacement: { owner: OWNER }, conditions: [ANNOUNCED] };

function undoingDeleted(observations: Partial<Observations>, other: SnapshotChanges["other"] = {}): SnapshotChanges {
  return {
    ...replacing(
      "Provisioning",
      { devicesClosed: true, marksCleared: true, ...observations },
      { status: DELETED, other },
    ),
    state: "Undoing",
    attempt: { action: "None" },
  };
}

/** The steps of a remediation that deletes its Machine, so that the owner creates a new one. */
export const MACHINE_DELETION_STEPS: readonly Step[] = [
  // MachineDeletion: refusals.
  {
    name: "a node that is named by itself is asked for its Machine",
    given: { ...replacing("Verifying", {}), status: {} },
    expected: "findMachine",
  },
  {
    name: "the Machine of a node is stored before anything is done to it",
    given: { ...replacing("Verifying", { nodeMachine: { found: true, ref: MACHINE } }), status: {} },
    expected: "stay (MachineFound)",
  },
  {
    name: "a node without a Machine is not replaced",
    given: { ...replacing("Verifying", { nodeMachine: { found: false, message: "none" } }), status: {} },
    expected: "→ Undoing (NoMachine)",
  },
  {
    name: "the admission to have a Machine replaced is asked for before the host is read",
    given: replacing("Verifying", { replacementAdmission: undefined }),
    expected: "askToReplace",
  },
  {
    name: "one Machine at a time is replaced: others wait before their hosts are powered off",
    given: replacing(
      "Verifying",
      { replacementAdmission: { granted: false, by: "ns/other", atMs: AT } },
      { other: { remainingMs: 0 } },
    ),
    expected: "stay (ReplacementTurn)",
  },
  {
    name: "a Machine is looked at before its host is powered off for it",
    given: replacing("Verifying", {}),
    expected: "examineMachine",
  },
  {
    name: "a Machine is not replaced without a proven reboot of this outage",
    given: replacing("Verifying", { machine: PRESENT }, { other: { host: snapshot({ state: "Verifying" }).host } }),
    expected: "→ Undoing (RebootRequired)",
  },
  {
    name: "a Machine of the control plane is left to its owner",
    given: replacing("Verifying", { machine: { ...PRESENT, isControlPlane: true } }),
    expected: "handToOwner",
  },
  {
    name: "a Machine of the control plane is not deleted once its owner was informed",
    given: replacing("Verifying", { machine: { ...PRESENT, isControlPlane: true }, handedToOwner: true }),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a Machine whose node has a control plane role is left to its owner",
    given: replacing("Verifying", {
      machine: PRESENT,
      examined: {
        node: { ...node(), metadata: { ...node().metadata, labels: { "node-role.kubernetes.io/master": "" } } },
      },
    }),
    expected: "handToOwner",
  },
  {
    name: "a Machine whose host is externally provisioned is left to its owner",
    given: replacing("Verifying", { machine: { ...PRESENT, externallyProvisioned: true } }),
    expected: "handToOwner",
  },
  {
    name: "a Machine whose host is externally provisioned is not deleted",
    given: replacing("Verifying", { machine: { ...PRESENT, externallyProvisioned: true }, handedToOwner: true }),
    expected: "→ Undoing (MachineNotReplaced)",
  },
  {
    name: "a Machine that now names another node is neither deleted nor handed to its owner",
    given: replacing("Verifying", { machine: { ...PRESENT, nodeName: "n2" } }),
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "a Machine that has become another node by the time of its deletion is left alone",
    given: replacing("Provisioning", { machine: { ...PRESENT, nodeName: "n2" } }),
    expected: "→ Undoing (SubjectMismatch)",
  },
  {
    name: "a Machine without a controller is not deleted: no controller would create another one",
    given: replacing("Verifying", { machine: { ...PRESENT, owner: undefined, isReplaced: false } }),
    expected: "→ Undoing (MachineNotReplaced)",
  },
  {
    name: "a Machine whose MachineSet has no replicas is not deleted",
    given: replacing("Verifying", { machine: { ...PRESENT, isReplaced: false }, handedToOwner: true }),
    expected: "→ Undoing (MachineNotReplaced)",
  },
  {
    name: "a Machine that is to be replaced has its host powered off first",
    given: replacing("Verifying", { machine: PRESENT }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  // MachineDeletion: the deletion.
  {
    name: "no Machine is deleted while its host is not proven off",
    given: replacing("Provisioning", { machine: PRESENT, power: READ_ON }, { status: EXPECTED }),
    expected: "→ PoweringOff (PowerOffLost)",
  },
  {
    name: "a Machine is read again right before it is deleted",
    given: replacing("Provisioning", { machine: { ...PRESENT, atMs: NOW.monotonicMs - 6_000 } }, { status: EXPECTED }),
    expected: "examineMachine",
  },
  {
    name: "a Machine that has joined the control plane since is not deleted",
    given: replacing(
      "Provisioning",
      { machine: { ...PRESENT, isControlPlane: true }, handedToOwner: true },
      { status: EXPECTED },
    ),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "the deletion of a Machine is announced before it is made",
    given: replacing("Provisioning", { machine: PRESENT }),
    expected: "stay (MachineDeletionExpected)",
  },
  {
    name: "a Machine is deleted once that is announced",
    given: replacing("Provisioning", { machine: PRESENT }, { status: EXPECTED }),
    expected: "deleteMachine",
  },
  {
    name: "the Machine is read before the host after a restart, because another Machine may have its name",
    given: replacing("Provisioning", { power: READ_ON, claim: undefined }, { status: EXPECTED }),
    expected: "examineMachine",
  },
  {
    name: "a Machine that is being deleted is waited for, whatever the target of its host shows",
    given: replacing(
      "Provisioning",
      { machine: DELETING, power: READ_ON, claim: undefined },
      { status: EXPECTED, other: { host: { found: false, reason: "NoTarget", message: "gone" } } },
    ),
    expected: "stay (MachineDeleted)",
  },
  {
    name: "a Machine that another client has deleted before is not replaced by us",
    given: replacing("Provisioning", { machine: DELETING }),
    expected: "→ Undoing (MachineNotReplaced)",
  },
  {
    name: "a Machine that cannot be deleted in time is tried again",
    given: replacing("Provisioning", { machine: PRESENT }, { other: { remainingMs: 0 } }),
    expected: "→ Verifying (AttemptFailed)",
  },
  // MachineDeletion: after the deletion.
  {
    name: "a Machine's replacement is searched for, whatever happened to the host",
    given: replacing(
      "Provisioning",
      { claim: undefined },
      { status: DELETED, other: { host: { found: false, reason: "NoTarget", message: "gone" } } },
    ),
    expected: "checkReplacement",
  },
  {
    name: "a host is kept off until its deprovisioning has begun",
    given: replacing("Provisioning", { replacement: NOT_YET }, { status: DELETED }),
    expected: "wait",
  },
  {
    name: "a host that is being deprovisioned is released",
    given: replacing(
      "Provisioning",
      { replacement: { ...NOT_YET, mayLetGo: true }, devicesClosed: true },
      { status: DELETED },
    ),
    expected: "releaseHost",
  },
  {
    name: "a host is released before a replacement counts as a success",
    given: replacing(
      "Provisioning",
      { replacement: { ...NOT_YET, nodeName: "n2" }, devicesClosed: true },
      { status: DELETED },
    ),
    expected: "releaseHost",
  },
  {
    name: "a Ready node of another Machine counts as a success",
    given: replacing(
      "Provisioning",
      { replacement: { ...NOT_YET, nodeName: "n2" }, devicesClosed: true, hostReleased: true },
      { status: DELETED },
    ),
    expected: "→ Succeeded (Replaced)",
  },
  {
    name: "a replacement is looked for repeatedly",
    given: replacing(
      "Provisioning",
      { replacement: { ...NOT_YET, atMs: NOW.monotonicMs - 10_000 } },
      { status: DELETED },
    ),
    expected: "checkReplacement",
  },
  {
    name: "a replacement that does not come in time counts as a failure",
    given: replacing(
      "Provisioning",
      { replacement: NOT_YET, devicesClosed: true, hostReleased: true },
      { status: DELETED, other: { remainingMs: 0 } },
    ),
    expected: "→ Undoing (ReplacementTimeout)",
  },
  {
    name: "an undo after the Machine was deleted does not power on the host",
    given: undoingDeleted({ replacement: { ...NOT_YET, mayLetGo: true } }),
    expected: "releaseHost",
  },
  {
    name: "an undo after the Machine was deleted reads what has happened to it",
    given: undoingDeleted({}),
    expected: "checkReplacement",
  },
  {
    name: "an undo keeps the host off until its deprovisioning has begun: the old system would come up again",
    given: undoingDeleted({ replacement: NOT_YET }),
    expected: "wait",
  },
  {
    name: "an undo releases a host at the end of its time, whatever happened to it",
    given: undoingDeleted({ replacement: NOT_YET }, { remainingMs: 0 }),
    expected: "releaseHost",
  },
  {
    name: "a remediation whose node has a successor of another name deletes itself",
    given: { state: "Succeeded", status: { replacement: { owner: OWNER, nodeName: "n2" } } },
    expected: "deleteSelf",
  },
  {
    name: "a remediation whose node came back under its name is left to the health check",
    given: { state: "Succeeded", status: { replacement: { owner: OWNER, nodeName: "n1" } } },
    expected: "dropFinalizer",
  },
];
