import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../src/api/core.ts";
import { FENCED, OUT_OF_SERVICE } from "../../../src/api/taints.ts";
import { bareMetalRemediationSpecSchema } from "../../../src/api/bare-metal-remediation.ts";
import { decide } from "../../../src/remediator/decide.ts";
import { ownNodeMessage } from "../../../src/remediator/moves.ts";
import { ORDERS_MAX } from "../../../src/remediator/orders.ts";
import { planOf } from "../../../src/remediator/plan.ts";
import { BACKUP_BYTES_MAX } from "../../../src/remediator/restore.ts";
import type { Seen } from "../../../src/remediator/seen.ts";
import type { Decision } from "../../../src/remediator/snapshot.ts";
import { nothingSeen, seenAfter } from "../../../src/remediator/seen.ts";
import { POWER_PROOF_AGE_MAX_MS, POWER_REREAD_MS } from "../../../src/remediator/timings.ts";
import type { SnapshotChanges } from "./snapshots.ts";
import {
  announced,
  DEVICE_AWAY,
  node,
  NOW,
  ordered,
  OWNER,
  PROVEN,
  READ_OFF,
  READ_ON,
  REFUSED_FOR_GOOD,
  said,
  SET,
  snapshot,
  STALE_LEASE,
  stateOf,
  told,
  UNDOING,
  VERIFIED,
} from "./snapshots.ts";

// What a decision must not rest on, a case each: something that is old, of another order, not looked at, or not stored yet.

const AGO_2S: Seen["power"] = { ...PROVEN, offAtMs: NOW.monotonicMs - 2_000 };
const TAINTED: Seen["taint"] = { attemptId: "a1", found: "Ours" };
const CAME_BACK: SnapshotChanges["status"] = {
  node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false },
};
const BACKUP = { status: { nodeUID: "node-uid", labels: { rack: "r7" } }, resourceVersion: "1" };

const RENEWED: NonNullable<Seen["lease"]> = { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 };

function readOff(agoMs: number): NonNullable<Seen["power"]["last"]> {
  return { state: "Off", raw: "Off", atMs: NOW.monotonicMs - agoMs };
}

const READY = node({ ready: "True" }).status.conditions ?? [];

function bootless(): Node {
  const { nodeInfo: _nodeInfo, ...status } = node().status;
  return { ...node(), status };
}

function tainted(): Node {
  return node({ taints: [OUT_OF_SERVICE, { ...FENCED, value: "uid" }] });
}

function heavy(): Node {
  const light = node();
  return { ...light, metadata: { ...light.metadata, annotations: { note: "x".repeat(BACKUP_BYTES_MAX) } } };
}

/** A Machine without a node of its own before; the node that it has become renewed its lease a second ago. */
function joinedLate(afterOnMs: number): SnapshotChanges {
  const machine = {
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Machine",
    namespace: "caps",
    name: "m1",
    uid: "m-uid",
  };
  return {
    state: "Verifying",
    attempt: { action: "On", done: true, actionAtMs: NOW.epochMs - afterOnMs },
    seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED, lease: RENEWED },
    status: { node: { name: "n1" } },
    other: { subject: { nodeName: "n1", cluster: undefined, machine } },
  };
}

/** Of a node that is gone. */
function reprovision(status: NonNullable<SnapshotChanges["status"]>): SnapshotChanges {
  return {
    state: "Verifying",
    attempt: { kind: "Reprovision" },
    plan: { type: "Reprovision", requireReboot: false },
    seen: { examined: { node: undefined }, identity: VERIFIED },
    status,
  };
}

const CASES: readonly { name: string; changes: SnapshotChanges; expected: string }[] = [
  // The power-off.
  {
    name: "what an earlier order was answered says nothing of this one, which may not have been sent",
    changes: {
      state: "PoweringOff",
      attempt: { id: "a2", sent: false },
      seen: { taintCleared: true, order: ordered("Acknowledged", 3_000), power: READ_ON },
    },
    expected: "wait",
  },
  {
    name: "a host that was off before its order is ordered off all the same: its BMC may show what was",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: { taintCleared: true, power: PROVEN, examined: { node: node() }, identity: VERIFIED, lease: STALE_LEASE },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a further order waits for a fresh check of the identity",
    changes: {
      state: "PoweringOff",
      seen: { taintCleared: true, order: ordered("Acknowledged", 21_000), power: READ_ON, examined: { node: node() } },
    },
    expected: "examine",
  },
  {
    name: "a node that is Ready again is left alone only where no cycle before may have powered its host off",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: {
        taintCleared: true,
        marksCleared: true,
        order: ordered("Rejected", 3_000),
        examined: { node: node() },
        identity: VERIFIED,
      },
      other: { node: node({ ready: "True" }) },
      status: { ...CAME_BACK, retryCount: 1 },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a power-off that is refused until its time is over fails with what the BMC said",
    changes: {
      state: "PoweringOff",
      plan: { retryLimit: 0 },
      seen: {
        taintCleared: true,
        order: ordered("Rejected", 3_000, { problem: { reason: "BMCRefused", message: "no", final: false } }),
      },
      other: { remainingMs: 0 },
    },
    expected: "→ Undoing (BMCRefused)",
  },
  {
    name: "no taint goes on a node whose Node is deleted instead",
    changes: {
      state: "PoweringOff",
      plan: { workloadRelease: "DeleteNode" },
      seen: { power: PROVEN, lease: STALE_LEASE },
    },
    expected: "→ Releasing (PowerOffConfirmed)",
  },
  {
    name: "a proof is not renewed during the pause of a device that was away",
    changes: { state: "Releasing", seen: { power: AGO_2S, taint: TAINTED, device: DEVICE_AWAY } },
    expected: "wait",
  },
  {
    name: "… unless it has run out meanwhile",
    changes: {
      state: "Releasing",
      seen: { power: { ...PROVEN, offAtMs: NOW.monotonicMs - 6_000 }, taint: TAINTED, device: DEVICE_AWAY },
    },
    expected: "readPower",
  },
  {
    name: "a process that takes a release over proves the host off by two readings of its own",
    changes: { state: "Releasing", seen: { power: { ...READ_OFF, last: readOff(10) }, taint: TAINTED } },
    expected: "wait",
  },
  {
    name: "… the second one a moment after the first",
    changes: { state: "Releasing", seen: { power: { ...READ_OFF, last: readOff(30) }, taint: TAINTED } },
    expected: "readPower",
  },
  {
    name: "an order whose answer was lost is on record as sent before its effect is looked for",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: { power: PROVEN, order: ordered("Uncertain", 1_000) },
    },
    expected: "stay (PowerOffSent)",
  },
  {
    name: "a host whose BMC does not say how it is is not ordered off over and over",
    changes: {
      state: "PoweringOff",
      seen: {
        taintCleared: true,
        power: { ...READ_ON, last: { state: "Unknown", raw: "", atMs: NOW.monotonicMs - 100 } },
        order: ordered("Acknowledged", 30_000),
        identity: VERIFIED,
      },
    },
    expected: "wait",
  },
  {
    name: "a host that reads Off is not one that turned itself on, though its orders are spent",
    changes: {
      state: "PoweringOff",
      attempt: { orders: ORDERS_MAX, offConfirmedAtMs: NOW.epochMs - 60_000 },
      seen: { taintCleared: true, power: READ_OFF, order: ordered("Acknowledged", 30_000) },
    },
    expected: "readPower",
  },
  {
    name: "an Off is read once more at once, not at the pace of an On",
    changes: {
      state: "PoweringOff",
      seen: {
        taintCleared: true,
        power: { ...READ_OFF, last: readOff(30) },
        order: ordered("Acknowledged", 3_000),
      },
    },
    expected: "readPower",
  },
  {
    name: "a node whose lease is renewed after its host was proven off runs on another host",
    changes: {
      state: "PoweringOff",
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 15_000 },
        lease: RENEWED,
      },
    },
    expected: "→ Undoing (WrongHost)",
  },
  {
    name: "one live look at the lease after its wait is enough",
    changes: {
      state: "PoweringOff",
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 15_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 20_000, readAtMs: NOW.monotonicMs - 1_000 },
      },
    },
    expected: "taint",
  },
  {
    name: "a node that is Ready after an order that the BMC took is no sign that the host was left alone",
    changes: {
      state: "PoweringOff",
      seen: {
        taintCleared: true,
        power: READ_ON,
        order: ordered("Acknowledged", 25_000),
        identity: VERIFIED,
        examined: { node: node({ ready: "True" }) },
      },
      status: CAME_BACK,
      other: { node: node({ ready: "True" }) },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "the node's lease is looked at before its host counts as the one that is off",
    changes: { state: "PoweringOff", seen: { power: PROVEN } },
    expected: "readLease",
  },
  {
    name: "a taint that the API server refuses is tried for as long as the power-off may take",
    changes: {
      state: "PoweringOff",
      seen: {
        power: PROVEN,
        lease: STALE_LEASE,
        kube: {
          call: "handToOwner",
          sinceMs: 0,
          refused: true,
          message: "no",
          failures: 1,
          retryAtMs: NOW.monotonicMs,
        },
      },
    },
    expected: "taint",
  },
  {
    name: "a proof that has grown old is renewed before the taint",
    changes: { state: "PoweringOff", seen: { power: AGO_2S, lease: STALE_LEASE } },
    expected: "readPower",
  },
  {
    name: "the taint bears the order that has proven the host off, not one before it",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: STALE_LEASE, taint: { attemptId: "a0", found: "Ours" } },
    },
    expected: "taint",
  },
  {
    name: "a host whose reboots did not last is not reprovisioned for them",
    changes: {
      state: "PoweringOff",
      attempt: { orders: 4, offConfirmedAtMs: NOW.epochMs - 60_000 },
      seen: {
        taintCleared: true,
        order: ordered("Acknowledged", 21_000),
        power: READ_ON,
        identity: VERIFIED,
        examined: { node: node() },
      },
      plan: { type: "Escalate", retryLimit: 0 },
      status: { provenReboots: 1 },
    },
    expected: "→ Undoing (RebootsNotProven)",
  },

  // The release.
  {
    name: "a device that refuses for good is not asked for the power of a fenced host over and over: that locks accounts",
    changes: { state: "Releasing", seen: { power: AGO_2S, taint: TAINTED, device: REFUSED_FOR_GOOD } },
    expected: "→ Undoing (BMCAuthenticationFailed)",
  },
  {
    name: "an Off that was read before the device failed begins no proof",
    changes: { state: "Releasing", seen: { power: READ_OFF, taint: TAINTED, device: DEVICE_AWAY } },
    expected: "untaint",
  },
  {
    name: "a Node that has joined anew is not deleted for the one before",
    changes: {
      state: "Releasing",
      plan: { workloadRelease: "DeleteNode" },
      seen: { power: PROVEN },
      other: { node: node({ uid: "new-uid" }) },
    },
    expected: "releasePods",
  },
  {
    name: "a Node is deleted only once just what it has now is stored",
    changes: {
      state: "Releasing",
      plan: { workloadRelease: "DeleteNode" },
      seen: { power: PROVEN, backup: BACKUP },
      status: { conditions: [announced()], backup: { ...BACKUP.status, labels: { rack: "r6" } } },
    },
    expected: "stay (NodeDeletionExpected)",
  },
  {
    name: "a boot override is set only on a host that was verified just now",
    changes: { state: "Provisioning", attempt: { bootOverride: true }, seen: { power: PROVEN } },
    expected: "verifyIdentity",
  },

  {
    name: "pods that have been released are looked for, not released over and over",
    changes: { state: "Releasing", seen: { power: PROVEN, taint: TAINTED, released: true } },
    expected: "checkDrained",
  },
  {
    name: "… again as soon as the pause after the last look is over",
    changes: {
      state: "Releasing",
      seen: {
        power: PROVEN,
        taint: TAINTED,
        released: true,
        drain: { pods: 1, attachments: 0, checks: 1, atMs: NOW.monotonicMs - 300 },
      },
    },
    expected: "checkDrained",
  },
  {
    name: "a Node that is saved and announced is deleted",
    changes: {
      state: "Releasing",
      plan: { workloadRelease: "DeleteNode" },
      seen: { power: PROVEN, backup: BACKUP },
      status: { conditions: [announced()], backup: BACKUP.status },
    },
    expected: "deleteNode",
  },
  {
    name: "… once",
    changes: {
      state: "Releasing",
      plan: { workloadRelease: "DeleteNode" },
      seen: { power: PROVEN, backup: BACKUP, nodeDeleted: true, released: true },
      status: { conditions: [announced()], backup: BACKUP.status },
    },
    expected: "checkDrained",
  },
  {
    name: "… not one of which nothing is on record",
    changes: {
      state: "Releasing",
      plan: { workloadRelease: "DeleteNode" },
      seen: { power: PROVEN, released: true },
      status: { node: { name: "n1" } },
    },
    expected: "checkDrained",
  },
  {
    name: "a boot override is set once its intent is stored",
    changes: {
      state: "Provisioning",
      plan: { type: "Reprovision", via: "NetworkBoot" },
      attempt: { bootOverride: true },
      seen: { power: PROVEN, identity: VERIFIED },
    },
    expected: "setBootOverride NetworkOnce",
  },
  // The way back.
  {
    name: "the power-off of a host is no order to power it on",
    changes: {
      state: "PoweringOn",
      attempt: { orders: 0 },
      seen: { identity: VERIFIED, power: READ_ON, order: ordered("Acknowledged", 3_000) },
    },
    expected: "stay (PoweringOn), powerOn",
  },
  {
    name: "a host that reads On after all its orders is on, though this process has sent none of them",
    changes: { state: "PoweringOn", attempt: { orders: ORDERS_MAX }, seen: { power: READ_ON } },
    expected: "recordReboot",
  },
  {
    name: "a power-on that was refused is sent again, though the BMC does not say how the host is",
    changes: {
      state: "PoweringOn",
      seen: {
        identity: VERIFIED,
        order: ordered("Rejected", 1_000, { action: "On" }),
        power: { ...READ_ON, last: { state: "Unknown", raw: "", atMs: NOW.monotonicMs - 100, runs: false } },
      },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "… but one that was taken only once the host is read Off",
    changes: {
      state: "PoweringOn",
      seen: {
        identity: VERIFIED,
        order: ordered("Acknowledged", 30_000, { action: "On" }),
        power: { ...READ_ON, last: { state: "Unknown", raw: "", atMs: NOW.monotonicMs - 100, runs: false } },
      },
    },
    expected: "wait",
  },
  {
    name: "a power-on that was sent runs out of its time under maintenance, too",
    changes: {
      state: "PoweringOn",
      plan: { retryLimit: 0 },
      seen: {
        order: ordered("Rejected", 30_000, {
          action: "On",
          problem: { reason: "BMCRefused", message: "no", final: false },
        }),
      },
      other: { remainingMs: 0, stop: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "→ Undoing (BMCRefused)",
  },
  {
    name: "a power-on that maintenance holds back does not run out of its time",
    changes: { state: "PoweringOn", other: { remainingMs: 0, stop: { reason: "Maintenance", message: "by a test" } } },
    expected: "stay (Maintenance)",
  },
  {
    name: "the Node that has joined for the one that was deleted is back in its new boot",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, restoredUid: "new-uid", lease: RENEWED },
      status: {
        node: { name: "n1", uid: "node-uid", bootID: "old-boot" },
        conditions: [announced()],
        backup: BACKUP.status,
      },
      other: { node: node({ uid: "new-uid", bootID: "new-boot" }) },
    },
    expected: "liftQuarantine",
  },
  {
    name: "a node that is made anew while it is awaited to be Ready gets its labels back, too",
    changes: {
      state: "Restoring",
      status: { backup: BACKUP.status },
      other: { node: node({ uid: "new-uid", ready: "True" }) },
    },
    expected: "restoreNode",
  },
  {
    name: "a boot override is not cleared before the pause of a device that was away is over",
    changes: {
      state: "Restoring",
      attempt: { bootOverride: true },
      seen: { device: DEVICE_AWAY },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "stay (BMCUnreachable)",
  },
  {
    name: "… and is known to be none once that was read",
    changes: {
      state: "Restoring",
      attempt: { bootOverride: true },
      seen: { override: "None" },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "stay (BootOverrideCleared)",
  },
  {
    name: "a remediation that is deleted before its host was read On takes all back, though its node says Ready",
    changes: {
      state: "PoweringOn",
      remediation: { deleting: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "the Node that is to be deleted is not the one that has joined anew, whatever boot it is in",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, lease: RENEWED },
      status: { conditions: [announced()] },
      other: { node: node({ bootID: "new-boot" }) },
    },
    expected: "wait",
  },
  {
    name: "a node that does not say in which boot it is has not rejoined",
    changes: { state: "Rejoining", seen: { devicesClosed: true, lease: RENEWED }, other: { node: bootless() } },
    expected: "wait",
  },
  {
    name: "a node that has joined anew gets its labels back at once, before it is Ready",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true },
      status: { backup: BACKUP.status },
      other: { node: node({ uid: "new-uid" }) },
    },
    expected: "restoreNode",
  },
  {
    name: "… and so does one that joins anew after that",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, restoredUid: "new-uid" },
      status: { backup: BACKUP.status },
      other: { node: node({ uid: "newer-uid" }) },
    },
    expected: "restoreNode",
  },
  {
    name: "a remediation that is deleted while its node is Ready in a new boot goes on to its success",
    changes: {
      state: "Restoring",
      remediation: { deleting: true },
      seen: { devicesClosed: true, hostReleased: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "→ Succeeded (Succeeded)",
  },
  {
    name: "… but not while it is Ready in the boot that was to end: that is what was",
    changes: { state: "Restoring", remediation: { deleting: true }, other: { node: node({ ready: "True" }) } },
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "… nor in a new boot in which it is not Ready",
    changes: {
      state: "Restoring",
      remediation: { deleting: true },
      other: { node: node({ ready: "False", bootID: "new-boot" }) },
    },
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "a remediation that has ended gives a node that joins late its labels back",
    changes: {
      state: "Failed",
      status: { conditions: [announced()], backup: BACKUP.status },
      other: { node: node({ uid: "new-uid" }) },
    },
    expected: "restoreNode",
  },
  {
    name: "a remediation that has ended and is being deleted does not delete itself as well",
    changes: {
      state: "Succeeded",
      remediation: { deleting: true },
      status: { replacement: { owner: SET, nodeName: "n2" } },
    },
    expected: "dropFinalizer",
  },
  {
    name: "… and has nothing to take off once its finalizer is off",
    changes: { state: "Succeeded", remediation: { deleting: true, hasFinalizer: false } },
    expected: "wait for a change",
  },
  {
    name: "a remediation that is deleted before it has its finalizer has begun nothing",
    changes: { state: "Resolving", remediation: { deleting: true, hasFinalizer: false } },
    expected: "wait for a change",
  },
  {
    name: "the Node that was not deleted yet is given no labels",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true },
      status: { backup: BACKUP.status },
      other: { node: node({ uid: BACKUP.status.nodeUID }) },
    },
    expected: "wait",
  },
  {
    name: "a node that came back by itself is back in the boot that it was in",
    changes: { state: "Restoring", attempt: { action: "None" }, other: { node: node({ ready: "True" }) } },
    expected: "closeDevices",
  },
  {
    name: "a remediation never deletes itself where the node has come back under its own name",
    changes: { state: "Succeeded", status: { replacement: { owner: SET, nodeName: "n1" } } },
    expected: "dropFinalizer",
  },
  {
    name: "a remediation that has ended keeps its finalizer for as long as it keeps the labels of a node that it deleted",
    changes: {
      state: "Failed",
      status: { conditions: [announced()], backup: BACKUP.status },
      other: { node: undefined },
    },
    expected: "wait for a change",
  },
  {
    name: "… unless somebody deletes it: the labels are kept in memory then",
    changes: {
      state: "Failed",
      remediation: { deleting: true },
      status: { conditions: [announced()], backup: BACKUP.status },
      other: { node: undefined },
    },
    expected: "dropFinalizer",
  },

  // The beginning.
  {
    name: "no host is taken for a node that is not there, and never was",
    changes: { state: "Resolving", status: { node: undefined }, other: { node: undefined, turn: undefined } },
    expected: "stay (NodeNotFound)",
  },
  {
    name: "a host that was taken by another target than the one that serves the node now is taken anew",
    changes: { state: "Resolving", seen: { claim: { owned: true, targetUid: "another-target-uid" } } },
    expected: "claimHost",
  },
  {
    name: "no host is taken while power orders are stopped: it would be kept from others, perhaps for good",
    changes: {
      state: "Resolving",
      seen: { claim: undefined },
      other: { turn: undefined, stop: { reason: "Paused", message: "by a test" } },
    },
    expected: "stay (Paused)",
  },
  {
    name: "a taint that an earlier remediation left comes off before the order: nothing is proven of the host",
    changes: { state: "Verifying", seen: { examined: { node: tainted() }, identity: VERIFIED } },
    expected: "clearMarks",
  },
  {
    name: "… once: the look from before that still shows it",
    changes: {
      state: "Verifying",
      seen: { examined: { node: tainted() }, identity: VERIFIED, marksCleared: true },
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "nothing is refused of a node that was not looked at yet",
    changes: {
      state: "Verifying",
      attempt: { kind: "Reprovision" },
      plan: { type: "Reprovision", requireReboot: false },
      seen: { identity: VERIFIED },
      other: { node: undefined },
    },
    expected: "examine",
  },
  {
    name: "a Node that cannot be saved is not reprovisioned either: that deletes it",
    changes: {
      state: "Verifying",
      attempt: { kind: "Reprovision" },
      plan: { type: "Reprovision", requireReboot: false },
      seen: { examined: { node: heavy() }, identity: VERIFIED },
    },
    expected: "→ Undoing (BackupTooLarge)",
  },
  {
    name: "a node that came back is not said to be back while a mark of ours may stand on it",
    changes: {
      state: "Verifying",
      seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED },
      status: CAME_BACK,
    },
    expected: "clearMarks",
  },
  {
    name: "a new boot is no sign of a node's return before any order: it was Ready when its remediation began",
    changes: {
      state: "Verifying",
      seen: { examined: { node: node({ ready: "True", bootID: "new-boot" }) }, identity: VERIFIED },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: true } },
    },
    expected: "quarantine",
  },
  {
    name: "a node that does not say in which boot it is has not come back after an order",
    changes: {
      state: "Verifying",
      attempt: { action: "On", done: true },
      seen: {
        examined: { node: { ...bootless(), status: { ...bootless().status, conditions: READY } } },
        identity: VERIFIED,
      },
    },
    expected: "quarantine",
  },
  {
    name: "a node that came back while its remediation waited for the host needs no power-off, though it is in the boot that it was in",
    changes: {
      state: "Verifying",
      attempt: { action: "Inherited" },
      seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED, power: READ_ON, marksCleared: true },
      status: CAME_BACK,
    },
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "a Machine that had no node is not back by a renewal that may have been on its way at the power-on",
    changes: joinedLate(5_000),
    expected: "quarantine",
  },
  { name: "… but by a later one", changes: joinedLate(30_000), expected: "readPower" },
  {
    name: "… but not a node that no Machine stands for, and that did not say in which boot it was",
    changes: { ...joinedLate(30_000), other: {} },
    expected: "quarantine",
  },
  {
    name: "… nor one whose Machine had a node, which did not say that either",
    changes: { ...joinedLate(30_000), status: { node: { name: "n1", uid: "node-uid" } } },
    expected: "quarantine",
  },
  {
    name: "… and before a further power-off, too, once its host reads On",
    changes: { ...joinedLate(30_000), attempt: { action: "ForceOff", done: true, actionAtMs: NOW.epochMs - 30_000 } },
    expected: "readPower",
  },
  {
    name: "the lease is handed over once: who has said so waits for its time",
    changes: {
      state: "Verifying",
      seen: { examined: { node: node() } },
      other: { runsHere: true },
      status: {
        conditions: [said("OwnNode", ownNodeMessage(snapshot({ state: "Verifying" })))],
      },
    },
    expected: "wait",
  },
  {
    name: "a node that is gone, of which nobody knows whether it runs the control plane, is not reprovisioned",
    changes: reprovision({}),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "… nor one that was saved with that role before it went",
    changes: reprovision({ backup: { nodeUID: "node-uid", labels: { "node-role.kubernetes.io/control-plane": "" } } }),
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "… but one that was saved without it is",
    changes: reprovision({ backup: BACKUP.status }),
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
];

const tell = (changes: SnapshotChanges): string => told(decide(snapshot(changes), NOW), changes.state);

describe("a decision", () => {
  for (const { name, changes, expected } of CASES) it(name, () => assert.equal(tell(changes), expected));
});

describe("the proof that a host is off", () => {
  const proven = (changes: Omit<SnapshotChanges, "state" | "seen">): Decision =>
    decide(
      snapshot({ state: "PoweringOff", seen: { power: PROVEN, lease: STALE_LEASE, taint: TAINTED }, ...changes }),
      NOW,
    );

  it("counts as one reboot, however often it is lost and made anew in its cycle", () => {
    assert.equal(proven({}).status?.provenReboots, 1);
    const again = { attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 }, status: { provenReboots: 1 } };
    assert.equal(proven(again).status?.provenReboots, 1);
  });

  it("counts as none in a reprovision, which rests on reboots before it", () => {
    assert.equal(proven({ attempt: { kind: "Reprovision" } }).status?.provenReboots, 0);
  });

  it("begins the time of the release when that begins, and once in its cycle", () => {
    const plan = { drainTimeoutMs: 300_000 };
    const first = proven({ attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 }, plan });
    assert.equal(Date.parse(first.status?.attempt?.deadline ?? ""), NOW.epochMs + 300_000);
    const again = proven({ attempt: { releasingSinceMs: NOW.epochMs - 60_000 }, plan });
    assert.equal(Date.parse(again.status?.attempt?.deadline ?? ""), NOW.epochMs + 240_000);
  });

  it("bounds what rests on it: reading anew, pods that are released, and any wait", () => {
    for (const ageMs of [0, 400, 1_400, 1_600, 3_000, 4_900]) {
      const power = { ...PROVEN, offAtMs: NOW.monotonicMs - ageMs };
      const drain = { pods: 1, attachments: 0, atMs: NOW.monotonicMs - 100, checks: 6 };
      const leftMs = POWER_PROOF_AGE_MAX_MS - ageMs;
      const decided = [{}, { drain }].map((seen) =>
        decide(snapshot({ state: "Releasing", seen: { power, taint: TAINTED, ...seen } }), NOW),
      );
      for (const { effects, nextCheckMs = 0 } of decided) {
        assert.ok(
          nextCheckMs <= POWER_REREAD_MS - ageMs || nextCheckMs === 0,
          `waits ${nextCheckMs} ms at ${ageMs} ms`,
        );
        for (const effect of effects) {
          if (effect.do === "readPower") assert.ok((effect.withinMs ?? Infinity) <= Math.max(leftMs, 1_000));
          if (effect.do === "releasePods") assert.ok(effect.withinMs <= leftMs);
        }
      }
    }
  });
});

describe("the intent to power on", () => {
  it("is neither sent nor done: whatever ends the remediation now owes the host an On, and has the time for it", () => {
    const seen = { power: PROVEN, swapped: true, drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 1 } };
    const { status } = decide(snapshot({ state: "Releasing", seen, plan: { powerOnTimeoutMs: 90_000 } }), NOW);
    const { action, sent, done, orders, deadline = "" } = status?.attempt ?? {};
    assert.deepEqual({ action, sent, done, orders }, { action: "On", sent: false, done: false, orders: 0 });
    assert.equal(Date.parse(deadline), NOW.epochMs + 90_000);
  });
});

describe("a device that could not be reached", () => {
  const decided = (state: "PoweringOff" | "Undoing", pauseMs: number) => {
    const device = { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + pauseMs };
    const status = { conditions: [said(DEVICE_AWAY.reason, DEVICE_AWAY.message)] };
    return decide(snapshot({ state, seen: { ...UNDOING, device }, status }), NOW);
  };

  for (const [state, effect] of [
    ["PoweringOff", "readPower"],
    ["Undoing", "readWhole"],
  ] as const) {
    it(`is called again when its pause is over, and not before (${state})`, () => {
      assert.deepEqual(decided(state, 700), { notes: [], effects: [], nextCheckMs: 700 });
      assert.equal(decided(state, 0).effects[0]?.do, effect);
    });
  }
});

describe("the duration of a step", () => {
  const planOfStrategy = (strategy: object) => planOf(bareMetalRemediationSpecSchema.parse({ strategy }));

  it("is never too short to power the host on again, nor so long that it cannot be written", () => {
    assert.equal(planOfStrategy({ powerOnTimeout: "0s" }).powerOnTimeoutMs, 30_000);
    for (const field of ["powerOffTimeout", "drainTimeout", "powerOnTimeout", "timeout"] as const) {
      assert.equal(planOfStrategy({ [field]: "9999999999h" })[`${field}Ms`], 24 * 3_600_000);
    }
  });
});

describe("what a process has seen", () => {
  const seen: Seen = {
    ...nothingSeen(),
    claim: { owned: true, targetUid: "target-uid" },
    examined: { node: node() },
    power: PROVEN,
    drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 3 },
    released: true,
    taintCleared: true,
    marksCleared: true,
  };

  it("of pods and volumes counts for the release that it belongs to, and no later one", () => {
    const { drain, released } = seenAfter(seen, stateOf("PoweringOff"), stateOf("Releasing"));
    assert.deepEqual([drain, released], [undefined, false]);
    assert.equal(seenAfter(seen, stateOf("Releasing"), stateOf("Releasing")).drain, seen.drain);
  });

  it("of marks is looked at again by an undo, and so is who else has the host", () => {
    const undone = seenAfter(seen, stateOf("Releasing"), stateOf("Undoing"));
    assert.deepEqual([undone.taintCleared, undone.marksCleared, undone.claim], [false, false, seen.claim]);
    const others: Seen = { ...seen, claim: { owned: false, by: OWNER, undoing: false, atMs: 0 } };
    assert.equal(seenAfter(others, stateOf("Releasing"), stateOf("Undoing")).claim, undefined);
  });

  it("of host and node is forgotten by the next attempt; who owns the host is not", () => {
    const next = seenAfter(seen, stateOf("Rejoining"), stateOf("Verifying", { id: "a2" }));
    assert.deepEqual([next.examined, next.power.provenAtMs, next.claim], [undefined, undefined, seen.claim]);
    const verifying = stateOf("Verifying");
    assert.equal(seenAfter(seen, verifying, verifying), seen, "a wait is stored in the same attempt");
    assert.equal(seenAfter(seen, verifying, stateOf("Verifying", { id: "a2" })).examined, undefined);
  });
});
