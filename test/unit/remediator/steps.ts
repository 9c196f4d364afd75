import { ownNodeMessage } from "../../../src/remediator/moves.ts";
import { ORDERS_MAX } from "../../../src/remediator/orders.ts";
import { BACKUP_BYTES_MAX } from "../../../src/remediator/restore.ts";
import type { Node } from "../../../src/api/core.ts";
import type { Seen, SentOrder } from "../../../src/remediator/seen.ts";
import type { SnapshotChanges } from "./snapshots.ts";
import {
  DEVICE_AWAY,
  NO_SUCCESSOR,
  node,
  NOW,
  OWNER,
  PROVEN,
  READ_OFF,
  READ_ON,
  REFUSED,
  said,
  snapshot,
  STALE_LEASE,
  TARGET_GONE,
  UNDOING,
  VERIFIED,
} from "./snapshots.ts";

/** Devices that are not accepted tell nothing. */
const UNKNOWN = { ...READ_ON, last: { state: "Unknown", raw: "not accepted", atMs: NOW.monotonicMs - 100 } } as const;
/** An order that the BMC has refused. */
const UNHEARD: SentOrder = {
  attemptId: "a1",
  action: "ForceOff",
  outcome: "Rejected",
  atMs: NOW.monotonicMs - 3_000,
};
/** One whose connection broke. */
const CUT_OFF: SentOrder = {
  ...UNHEARD,
  problem: { reason: "BMCUnreachable", message: "the other side closed", final: false },
};
const CUT_OFF_BY_GATEWAY: SentOrder = {
  ...UNHEARD,
  problem: { reason: "BMCBusy", message: "503 Service Unavailable", final: false },
};

/** A node that has come back in its old boot while its BMC refuses, or does not answer, the order to power it off. */
function cameBack(seen: Partial<Seen>): SnapshotChanges {
  return {
    state: "PoweringOff",
    attempt: { sent: false },
    seen: { ...REFUSED, marksCleared: true, ...seen },
    other: { node: node({ ready: "True" }) },
    status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
  };
}

/** One of several devices is off. */
const HALF_ON: Seen["power"] = {
  ...READ_ON,
  last: { state: "Off", raw: "Off", atMs: NOW.monotonicMs - 100, runs: true },
};

function onOrder(outcome: SentOrder["outcome"], ageMs: number): SentOrder {
  return { attemptId: "a1", action: "On", outcome, atMs: NOW.monotonicMs - ageMs };
}

/** Three members of etcd, the node's among them. @param up whether all others are. */
function membersOfEtcd(up: boolean): Seen["members"] {
  return [
    { node: "n1", up: true },
    { node: "n2", up: true },
    { node: "n3", up },
  ];
}

/** A node whose annotations have so many characters. */
function heavyNode(length: number): Node {
  const light = node();
  return { ...light, metadata: { ...light.metadata, annotations: { "example.com/note": "x".repeat(length) } } };
}

function labelled(label: string): Node {
  const plain = node();
  return { ...plain, metadata: { ...plain.metadata, labels: { [label]: "" } } };
}

/** Steps within states that the pairs of state and event (`decide.test.ts`) do not reach. */
export const STEPS: readonly { name: string; changes: SnapshotChanges; expected: string }[] = [
  {
    name: "without a finalizer nothing else is done first",
    changes: { state: "Resolving", remediation: { hasFinalizer: false } },
    expected: "addFinalizer",
  },
  {
    name: "a host that another remediation owns is waited for",
    changes: {
      state: "Resolving",
      seen: { claim: { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } },
      other: {
        host: {
          found: true,
          facts: {
            ref: { kind: "FencingTarget", namespace: "x", name: "n1", uid: "t" },
            identity: undefined,
            owner: OWNER,
            lastReboot: undefined,
            isPoweredByMark: false,
            takenBack: undefined,
            isInUse: true,
          },
        },
      },
    },
    expected: "stay (HostBusy)",
  },
  {
    name: "a host whose owner has gone is taken",
    changes: {
      state: "Resolving",
      seen: { claim: { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs - 300 } },
    },
    expected: "claimHost",
  },
  {
    name: "an unverified host is not powered",
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: node() },
        identity: { verdict: { verified: false, reason: "Mismatch", message: "another" }, atMs: NOW.monotonicMs },
      },
    },
    expected: "→ Undoing (IdentityMismatch)",
  },
  {
    name: "an identity that was verified too long ago is verified again, and the node looked at with it",
    changes: {
      state: "Verifying",
      seen: {
        examined: { node: node() },
        identity: { verdict: { verified: true, message: "" }, atMs: NOW.monotonicMs - 6_000 },
      },
    },
    expected: "examine",
  },
  {
    name: "a Ready node is quarantined before the order",
    changes: { state: "Verifying", seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED } },
    expected: "quarantine",
  },
  {
    name: "the intent is stored, and the order sent after it",
    changes: { state: "Verifying", seen: { examined: { node: node() }, identity: VERIFIED } },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a taint that may stand without a proof comes off before all else, also when nothing answers",
    changes: { state: "PoweringOff", seen: { power: READ_ON, device: DEVICE_AWAY }, other: { remainingMs: 0 } },
    expected: "untaint",
  },
  {
    name: "a host whose node cannot be tainted for good is not kept off",
    changes: {
      state: "PoweringOff",
      plan: { retryLimit: 0 },
      seen: {
        power: PROVEN,
        lease: STALE_LEASE,
        taintCleared: true,
        taintFailure: "forbidden",
      },
      other: { remainingMs: 0 },
    },
    expected: "→ Undoing (PowerOffTimeout)",
  },
  {
    name: "before that a taint is taken off that may stand",
    changes: {
      state: "PoweringOff",
      plan: { retryLimit: 0 },
      seen: {
        power: PROVEN,
        lease: STALE_LEASE,
        taintFailure: "no connection",
      },
      other: { remainingMs: 0 },
    },
    expected: "untaint",
  },
  {
    name: "one Off reading is no proof",
    changes: { state: "PoweringOff", seen: { taintCleared: true, power: READ_OFF, lease: STALE_LEASE } },
    expected: "readPower",
  },
  {
    name: "two Off readings are, and with a stale lease the taint follows at once",
    changes: { state: "PoweringOff", seen: { power: PROVEN, lease: STALE_LEASE } },
    expected: "taint",
  },
  {
    name: "a lease that was renewed shortly before the order holds the taint back",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 10_000 } },
    },
    expected: "wait",
  },
  {
    name: "so does a Ready condition that is still True, whatever the clock of the node says",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: STALE_LEASE, examined: { node: node({ ready: "True" }) } },
    },
    expected: "wait",
  },
  {
    name: "so does one that a kubelet has posted as False: clocks may be wrong by more than the lease",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: STALE_LEASE, examined: { node: node({ ready: "False" }) } },
    },
    expected: "wait",
  },
  {
    name: "so does one that has become Ready since the node was examined",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: STALE_LEASE, examined: { node: node() } },
      other: { node: node({ ready: "True" }) },
    },
    expected: "wait",
  },
  {
    name: "so does a renewal that this process has seen, whatever time it bears",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 5_000 } },
    },
    expected: "wait",
  },
  {
    name: "a lease that the API server says was silent for as long as no kubelet is that lives holds nothing up, however young",
    changes: {
      state: "PoweringOff",
      seen: {
        power: PROVEN,
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 1_000, writtenAtMs: NOW.monotonicMs - 22_000 },
      },
    },
    expected: "taint",
  },
  {
    name: "one that was silent for less is waited for: a kubelet that lost a request tries again after its time-out",
    changes: {
      state: "PoweringOff",
      seen: {
        power: PROVEN,
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 300_000, writtenAtMs: NOW.monotonicMs - 21_000 },
      },
    },
    expected: "wait",
  },
  {
    name: "a silence ends with a renewal that this process has seen, and begins again",
    changes: {
      state: "PoweringOff",
      seen: {
        power: PROVEN,
        lease: { ...STALE_LEASE, writtenAtMs: NOW.monotonicMs - 60_000, renewedAtMs: NOW.monotonicMs - 20_000 },
      },
    },
    expected: "wait",
  },
  {
    name: "a kubelet that renews every 20 s is given more than that",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 21_000 },
        lease: { ...STALE_LEASE, durationMs: 80_000 },
        examined: { node: node({ ready: "True" }) },
      },
    },
    expected: "wait",
  },
  {
    name: "but no lease, however long, keeps a host off for hours",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 64_000 },
        lease: { ...STALE_LEASE, durationMs: 100_000_000 },
        examined: { node: node({ ready: "True" }) },
      },
    },
    expected: "taint",
  },
  {
    name: "silence while the API server was away says nothing",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 21_000 } },
    },
    expected: "wait",
  },
  {
    name: "nor does it where the API server's stamps show a long one",
    changes: {
      state: "PoweringOff",
      seen: {
        power: PROVEN,
        lease: {
          ...STALE_LEASE,
          writtenAtMs: NOW.monotonicMs - 90_000,
          answeringSinceMs: NOW.monotonicMs - 21_000,
        },
      },
    },
    expected: "wait",
  },
  {
    name: "what was seen of the lease before the proof does not do: its watch may lag",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: { ...STALE_LEASE, readAtMs: NOW.monotonicMs - 101 } },
    },
    expected: "readLease",
  },
  {
    name: "the last word before the taint is a live look at the lease",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 25_000, readAtMs: NOW.monotonicMs - 20_000 },
      },
    },
    expected: "readLease",
  },
  {
    name: "a renewal within a request's time-out after the proof may have been on its way: the wait starts anew",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 10_000, renewedAtMs: NOW.monotonicMs - 4_000 },
      },
    },
    expected: "wait",
  },
  {
    name: "a later renewal trips the guard, in whichever state the host is fenced",
    changes: {
      state: "Releasing",
      seen: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 },
      },
    },
    expected: "→ Undoing (WrongHost)",
  },
  {
    name: "a taint of this attempt ends the proof's state",
    changes: {
      state: "PoweringOff",
      seen: { power: PROVEN, lease: STALE_LEASE, taint: { attemptId: "a1", found: "Ours" } },
    },
    expected: "→ Releasing (PowerOffConfirmed)",
  },
  {
    name: "after a restart an order that may not have been sent is sent under a new id once the host reads Off",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: { taintCleared: true, power: READ_OFF, identity: VERIFIED, examined: { node: node() } },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "… which looks at the node and at etcd's members first: this process has not",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: { taintCleared: true, power: READ_OFF, identity: VERIFIED },
    },
    expected: "examine",
  },
  {
    name: "after a restart such an order is given its time while the host reads On",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED },
    },
    expected: "wait",
  },
  {
    name: "a host that reads On long after the order is ordered off once more",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 21_000 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED, examined: { node: node() } },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a host that reads On within that time is not",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 19_000 },
      seen: { taintCleared: true, power: READ_ON },
    },
    expected: "wait",
  },
  {
    name: "a host that came on again after it was proven off is ordered off once more at once",
    changes: {
      state: "PoweringOff",
      attempt: { orders: 1, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED, examined: { node: node() } },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "… the next time after a pause",
    changes: {
      state: "PoweringOff",
      attempt: { orders: 2, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED },
    },
    expected: "wait",
  },
  {
    name: "… and after the last order not at all",
    changes: {
      state: "PoweringOff",
      attempt: { orders: ORDERS_MAX, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
      plan: { retryLimit: 0 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED, examined: { node: node() } },
    },
    expected: "→ Undoing (HostTurnsItselfOn)",
  },
  {
    name: "the last of all orders is given its time before that is said",
    changes: {
      state: "PoweringOff",
      attempt: { orders: ORDERS_MAX, offConfirmedAtMs: NOW.epochMs - 1_000 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED },
    },
    expected: "wait",
  },
  {
    name: "a host that heeds none of its orders gets no more of them, however long it may take",
    changes: {
      state: "PoweringOff",
      attempt: { orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 100_000 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED },
    },
    expected: "wait",
  },
  {
    name: "an order that was refused does not count",
    changes: {
      state: "PoweringOff",
      attempt: { orders: ORDERS_MAX, sent: false },
      seen: {
        taintCleared: true,
        examined: { node: node() },
        identity: VERIFIED,
        order: { attemptId: "a1", action: "ForceOff", outcome: "Rejected", atMs: NOW.monotonicMs - 3_000 },
      },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "the intent to power on is stored with each order",
    changes: { state: "PoweringOn", attempt: { orders: 0 }, seen: { identity: VERIFIED } },
    expected: "stay (PoweringOn), powerOn",
  },
  {
    name: "Ons without effect are as few",
    changes: {
      state: "PoweringOn",
      attempt: { orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 100_000 },
      seen: { identity: VERIFIED, power: { ...READ_OFF, offReads: 2 } },
    },
    expected: "wait",
  },
  {
    name: "those of an undo, too",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false, orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 1_000_000 },
      seen: {
        taintCleared: true,
        power: { ...READ_OFF, offReads: 2 },
        identity: VERIFIED,
        successor: NO_SUCCESSOR,
      },
    },
    expected: "wait",
  },
  {
    name: "unless the remediation is being deleted",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false, orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 1_000_000 },
      remediation: { deleting: true },
      seen: {
        taintCleared: true,
        power: READ_OFF,
        identity: VERIFIED,
        successor: NO_SUCCESSOR,
      },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "what refused the last order is the verdict, though other calls to the device succeed",
    changes: {
      state: "PoweringOn",
      plan: { retryLimit: 0 },
      seen: {
        order: {
          attemptId: "a1",
          action: "On",
          outcome: "Rejected",
          problem: { reason: "BMCRefused", message: "not now", final: false },
          atMs: NOW.monotonicMs - 3_000,
        },
      },
      other: { remainingMs: 0 },
    },
    expected: "→ Undoing (BMCRefused)",
  },
  {
    name: "an undo whose devices say nothing of their power asks who they are",
    changes: {
      state: "Undoing",
      seen: {
        taintCleared: true,
        power: UNKNOWN,
        identity: { verdict: { verified: false, reason: "Mismatch", message: "another" }, atMs: 0 },
        successor: NO_SUCCESSOR,
      },
    },
    expected: "verifyIdentity",
  },
  {
    name: "… and says why it waits",
    changes: {
      state: "Undoing",
      seen: {
        taintCleared: true,
        power: UNKNOWN,
        identity: {
          verdict: { verified: false, reason: "Mismatch", message: "another" },
          atMs: NOW.monotonicMs - 100,
        },
        successor: NO_SUCCESSOR,
      },
    },
    expected: "stay (IdentityMismatch)",
  },
  {
    name: "a remediation that is held back before its first order gives its place among those under way to another",
    changes: {
      state: "Verifying",
      seen: { marksCleared: true },
      other: { stop: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "→ Resolving (Maintenance)",
  },
  {
    name: "… but not one whose host may be off",
    changes: {
      state: "Verifying",
      attempt: { action: "ForceOff", sent: true },
      seen: { marksCleared: true },
      other: { stop: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "stay (Maintenance)",
  },
  {
    name: "no further order goes out while the stop switch is on",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 21_000 },
      seen: { taintCleared: true, power: READ_ON, identity: VERIFIED },
      other: { stop: { reason: "Paused", message: "by a test" } },
    },
    expected: "stay (Paused)",
  },
  {
    name: "nor, in maintenance, a further On",
    changes: {
      state: "PoweringOn",
      seen: {
        identity: VERIFIED,
        power: READ_OFF,
        order: { attemptId: "a1", action: "On", outcome: "Rejected", atMs: NOW.monotonicMs - 3_000 },
      },
      other: { stop: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "stay (Maintenance)",
  },
  {
    name: "nor that of an undo",
    changes: {
      state: "Undoing",
      seen: {
        taintCleared: true,
        power: READ_OFF,
        identity: VERIFIED,
        successor: NO_SUCCESSOR,
      },
      other: { stop: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "stay (Maintenance)",
  },
  {
    name: "a refused On may have turned another device on: all are read before it is repeated",
    changes: { state: "PoweringOn", seen: { identity: VERIFIED, order: onOrder("Rejected", 3_000) } },
    expected: "readWhole",
  },
  {
    name: "a host that runs while one of its devices is off gets a further On",
    changes: {
      state: "PoweringOn",
      seen: { identity: VERIFIED, power: HALF_ON, order: onOrder("Acknowledged", 21_000) },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "… after a pause, also where the device refuses it",
    changes: {
      state: "PoweringOn",
      seen: { identity: VERIFIED, power: HALF_ON, order: onOrder("Rejected", 3_000) },
    },
    expected: "wait",
  },
  {
    name: "… and goes on without that device once it is out of time: another power cycle would be worse",
    changes: {
      state: "PoweringOn",
      seen: { identity: VERIFIED, power: HALF_ON, order: onOrder("Rejected", 3_000), rebootRecorded: true },
      other: { remainingMs: 0 },
    },
    expected: "→ Rejoining (PoweredOn)",
  },
  {
    name: "an undo powers a device on that was turned off while its twin refused",
    changes: { state: "Undoing", seen: { ...UNDOING, identity: VERIFIED, power: HALF_ON } },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "… and gives that device up once it is out of time, since the host runs",
    changes: { state: "Undoing", seen: { ...UNDOING, power: HALF_ON }, other: { remainingMs: 0 } },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "… also where nobody else would power it on",
    changes: {
      state: "Undoing",
      seen: { ...UNDOING, power: HALF_ON },
      other: { remainingMs: 0 },
      remediation: { deleting: true },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "a fenced host that reads On loses the taint",
    changes: { state: "Releasing", seen: { power: READ_ON } },
    expected: "untaint",
  },
  {
    name: "… and is then forced off and proven anew",
    changes: { state: "Releasing", seen: { power: READ_ON, taintCleared: true } },
    expected: "→ PoweringOff (PowerOffLost)",
  },
  {
    name: "a proof that grows old is renewed before anything else is done",
    changes: {
      state: "Releasing",
      seen: {
        power: { ...PROVEN, offAtMs: NOW.monotonicMs - 1_600 },
        taint: { attemptId: "a1", found: "Ours" },
      },
    },
    expected: "readPower",
  },
  {
    name: "pods are released once the taint of this attempt stands",
    changes: { state: "Releasing", seen: { power: PROVEN, taint: { attemptId: "a1", found: "Ours" } } },
    expected: "releasePods",
  },
  {
    name: "nothing is released while the node's last taint is of another attempt",
    changes: { state: "Releasing", seen: { power: PROVEN, taint: { attemptId: "a0", found: "Ours" } } },
    expected: "taint",
  },
  {
    name: "pods are not deleted where that is left to Kubernetes",
    changes: {
      state: "Releasing",
      plan: { podRelease: "GarbageCollector" },
      seen: { power: PROVEN, taint: { attemptId: "a1", found: "Ours" } },
    },
    expected: "checkDrained",
  },
  {
    name: "pods that are left keep the host off",
    changes: {
      state: "Releasing",
      seen: {
        power: PROVEN,
        taint: { attemptId: "a1", found: "Ours" },
        released: true,
        drain: { pods: 1, attachments: 0, atMs: NOW.monotonicMs - 10, checks: 1 },
      },
    },
    expected: "wait",
  },
  {
    name: "volumes that are left keep the host off",
    changes: {
      state: "Releasing",
      seen: {
        power: PROVEN,
        taint: { attemptId: "a1", found: "Ours" },
        released: true,
        drain: { pods: 0, attachments: 1, atMs: NOW.monotonicMs - 10, checks: 1 },
      },
    },
    expected: "wait",
  },
  {
    name: "once drained the taint makes way for the quarantine before anything is powered on",
    changes: {
      state: "Releasing",
      seen: { power: PROVEN, quarantined: true, drain: { pods: 0, attachments: 0, atMs: 0, checks: 1 } },
    },
    expected: "swapMarks",
  },
  {
    name: "then the intent to power on is stored",
    changes: {
      state: "Releasing",
      seen: { power: PROVEN, swapped: true, drain: { pods: 0, attachments: 0, atMs: 0, checks: 1 } },
    },
    expected: "→ PoweringOn (Drained)",
  },
  {
    name: "a Reprovision goes on to the boot override",
    changes: {
      state: "Releasing",
      attempt: { kind: "Reprovision" },
      seen: { power: PROVEN, swapped: true, drain: { pods: 0, attachments: 0, atMs: 0, checks: 1 } },
    },
    expected: "→ Provisioning (Drained)",
  },
  {
    name: "a boot override is announced before it is set",
    changes: { state: "Provisioning", seen: { power: PROVEN, identity: VERIFIED } },
    expected: "stay (BootOverride)",
  },
  {
    name: "the deletion of the node is announced before it is done",
    changes: {
      state: "Provisioning",
      attempt: { bootOverride: true },
      seen: {
        power: PROVEN,
        override: "NetworkOnce",
        backup: { status: { nodeUID: "node-uid" }, resourceVersion: "1" },
      },
    },
    expected: "stay (NodeDeletionExpected)",
  },
  {
    name: "… also where the same backup is stored from an earlier attempt",
    changes: {
      state: "Provisioning",
      attempt: { bootOverride: true },
      status: { backup: { nodeUID: "node-uid" } },
      seen: {
        power: PROVEN,
        override: "NetworkOnce",
        backup: { status: { nodeUID: "node-uid" }, resourceVersion: "1" },
      },
    },
    expected: "stay (NodeDeletionExpected)",
  },
  {
    name: "a node is not deleted while its host is not proven off",
    changes: {
      state: "Provisioning",
      attempt: { bootOverride: true },
      seen: {
        power: READ_ON,
        override: "NetworkOnce",
        backup: { status: { nodeUID: "node-uid" }, resourceVersion: "1" },
      },
    },
    expected: "→ PoweringOff (PowerOffLost)",
  },
  {
    name: "a node in its old boot has not rejoined, whatever its lease says",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs } },
      other: { node: node({ ready: "True" }) },
    },
    expected: "wait",
  },
  {
    name: "a node in a new boot whose lease was not renewed has not rejoined",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, lease: STALE_LEASE },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "wait",
  },
  {
    name: "a renewal from before the power-on does not count",
    changes: {
      state: "Rejoining",
      seen: {
        devicesClosed: true,
        order: { attemptId: "a1", action: "On", outcome: "Acknowledged", atMs: NOW.monotonicMs - 1_000 },
        lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 30_000 },
      },
      other: { node: node({ bootID: "new-boot" }) },
    },
    expected: "wait",
  },
  {
    name: "new boot and renewed lease lift the quarantine",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs } },
      other: { node: node({ bootID: "new-boot" }) },
    },
    expected: "liftQuarantine",
  },
  {
    name: "a Ready node ends it: first the host is given up",
    changes: {
      state: "Restoring",
      seen: { devicesClosed: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "releaseHost",
  },
  {
    name: "… then the verdict is given",
    changes: {
      state: "Restoring",
      seen: { devicesClosed: true, hostReleased: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "→ Succeeded (Succeeded)",
  },
  {
    name: "a boot override is cleared before the verdict",
    changes: {
      state: "Restoring",
      attempt: { bootOverride: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "setBootOverride None",
  },
  {
    name: "an undo looks for a successor before it powers the host on",
    changes: { state: "Undoing", seen: { taintCleared: true, power: READ_OFF } },
    expected: "checkSuccessor",
  },
  {
    name: "an undo that owes an On waits for the target to be made anew",
    changes: { state: "Undoing", seen: { taintCleared: true }, other: { host: TARGET_GONE } },
    expected: "stay (TargetGone)",
  },
  {
    name: "… not for ever",
    changes: { state: "Undoing", seen: { taintCleared: true }, other: { host: TARGET_GONE, remainingMs: 0 } },
    expected: "clearMarks",
  },
  {
    name: "… and not where it owes none",
    changes: {
      state: "Undoing",
      attempt: { action: "None" },
      seen: { taintCleared: true },
      other: { host: TARGET_GONE },
    },
    expected: "clearMarks",
  },
  {
    name: "an undo with a successor waiting sends no On",
    changes: {
      state: "Undoing",
      seen: { taintCleared: true, successor: { waiting: true, atMs: NOW.monotonicMs } },
    },
    expected: "clearMarks",
  },
  {
    name: "an undo stores its intent before the On",
    changes: {
      state: "Undoing",
      seen: {
        taintCleared: true,
        power: READ_OFF,
        identity: VERIFIED,
        successor: NO_SUCCESSOR,
      },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo of an order that was not proven waits until it cannot take effect any more",
    changes: {
      state: "Undoing",
      attempt: { done: false },
      seen: { taintCleared: true, power: READ_ON, successor: NO_SUCCESSOR },
    },
    expected: "wait",
  },
  {
    name: "… also where the connection broke on that order: the BMC may have heard it",
    changes: {
      state: "Undoing",
      attempt: { done: false },
      seen: {
        taintCleared: true,
        order: CUT_OFF,
        power: READ_ON,
        successor: NO_SUCCESSOR,
      },
    },
    expected: "wait",
  },
  {
    name: "whose turn it is not yet keeps the host, and waits",
    changes: { state: "Resolving", other: { turn: undefined } },
    expected: "askForTurn",
  },
  {
    name: "who cannot begin any more makes way for others",
    changes: { state: "Resolving", other: { turn: { granted: true }, host: TARGET_GONE } },
    expected: "leaveTurn",
  },
  {
    name: "a lease is handed over once: who still runs on the node waits for its time",
    changes: {
      state: "Resolving",
      other: { runsHere: true },
      status: { conditions: [said("OwnNode", ownNodeMessage(snapshot({ state: "Resolving" })))] },
    },
    expected: "wait",
  },
  {
    name: "… and fails then",
    changes: {
      state: "Resolving",
      other: { runsHere: true, remainingMs: 0 },
      status: { conditions: [said("OwnNode", ownNodeMessage(snapshot({ state: "Resolving" })))] },
    },
    expected: "→ Undoing (OwnNode)",
  },
  {
    name: "who waits for its turn is in no hurry",
    changes: {
      state: "Resolving",
      other: { turn: { granted: false, reason: "WaitingForTurn", message: "full" }, remainingMs: 0 },
      status: { conditions: [said("WaitingForTurn", "full")] },
    },
    expected: "wait",
  },
  {
    name: "who waits for etcd fails in the end",
    changes: {
      state: "Resolving",
      other: { turn: { granted: false, reason: "ControlPlaneQuorum", message: "two are down" }, remainingMs: 0 },
      status: { conditions: [said("ControlPlaneQuorum", "two are down")] },
    },
    expected: "→ Undoing (ControlPlaneQuorum)",
  },
  {
    name: "a node that was not Ready and is again needs no power cycle",
    changes: {
      state: "Verifying",
      seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED, marksCleared: true },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
    },
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "one that was Ready from the start does",
    changes: {
      state: "Verifying",
      seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED, marksCleared: true, quarantined: true },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: true } },
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "so does one in the boot that a power order of ours was to end",
    changes: {
      state: "Verifying",
      attempt: { action: "ForceOff", sent: true },
      seen: { examined: { node: node({ ready: "True" }) }, identity: VERIFIED, marksCleared: true, quarantined: true },
      status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "one that came back after the time of its attempt does not, if its host is on",
    changes: {
      state: "Verifying",
      attempt: { action: "On", sent: true, done: true },
      seen: { examined: { node: node({ ready: "True", bootID: "new-boot" }) }, power: READ_ON, marksCleared: true },
    },
    expected: "→ Restoring (BackLate)",
  },
  {
    name: "… which is read before",
    changes: {
      state: "Verifying",
      attempt: { action: "On", sent: true, done: true },
      seen: { examined: { node: node({ ready: "True", bootID: "new-boot" }) }, marksCleared: true },
    },
    expected: "readPower",
  },
  {
    name: "… since a host that is off has a node that says Ready for a while",
    changes: {
      state: "Verifying",
      attempt: { action: "On", sent: true },
      seen: {
        examined: { node: node({ ready: "True", bootID: "new-boot" }) },
        identity: VERIFIED,
        power: { ...READ_OFF, offReads: 2 },
        quarantined: true,
      },
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a node that comes back while the BMC refuses the order is left alone",
    changes: cameBack({}),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "… once the host reads On, where the connection broke on that order: it may have been heard",
    changes: cameBack({ order: CUT_OFF }),
    expected: "readPower",
  },
  {
    name: "… and just so where it was answered with 503, which a gateway says too when the BMC has heard it",
    changes: cameBack({ order: CUT_OFF_BY_GATEWAY }),
    expected: "readPower",
  },
  {
    name: "… and just so where the connection of an order before it broke",
    changes: cameBack({ order: { ...UNHEARD, heardBeforeMs: CUT_OFF.atMs } }),
    expected: "readPower",
  },
  {
    name: "… for so long that the order cannot take effect any more",
    changes: cameBack({ order: CUT_OFF, power: READ_ON }),
    expected: "wait",
  },
  {
    name: "… and then it is left alone",
    changes: cameBack({ order: { ...CUT_OFF, atMs: NOW.monotonicMs - 25_000 }, power: READ_ON }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "… which counts from the order that may have been heard, not from a refused one after it",
    changes: cameBack({ order: { ...UNHEARD, heardBeforeMs: NOW.monotonicMs - 25_000 }, power: READ_ON }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "… and while its BMC does not say how the host is, that is waited for",
    changes: cameBack({ order: CUT_OFF, power: UNKNOWN }),
    expected: "wait",
  },
  {
    name: "… and as usual where it reads Off",
    changes: cameBack({ order: CUT_OFF, power: READ_OFF }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "… but not if another order before that may have taken effect",
    changes: { ...cameBack({}), attempt: { sent: false, orders: 2 } },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "an order to a member of etcd is not repeated without a new look at the others",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false },
      seen: { ...REFUSED, identity: undefined, members: membersOfEtcd(true) },
    },
    expected: "examine",
  },
  {
    name: "… nor while another is down",
    changes: { state: "PoweringOff", attempt: { sent: false }, seen: { ...REFUSED, members: membersOfEtcd(false) } },
    expected: "stay (ControlPlaneQuorum)",
  },
  {
    name: "… nor asked of a host that was proven off before",
    changes: {
      state: "PoweringOff",
      attempt: { sent: false, offConfirmedAtMs: NOW.epochMs - 5_000 },
      seen: { ...REFUSED, members: membersOfEtcd(false) },
    },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "an agent does not repeat an order to the node that it runs on by now",
    changes: { state: "PoweringOff", attempt: { sent: false }, seen: REFUSED, other: { runsHere: true } },
    expected: "stay (OwnNode), handOver",
  },
  {
    name: "a node that cannot be saved is not powered off to be deleted",
    changes: {
      state: "Verifying",
      plan: { workloadRelease: "DeleteNode" },
      seen: { examined: { node: heavyNode(BACKUP_BYTES_MAX) }, identity: VERIFIED },
    },
    expected: "→ Undoing (BackupTooLarge)",
  },
  {
    name: "… but may be where it need not be deleted",
    changes: { state: "Verifying", seen: { examined: { node: heavyNode(BACKUP_BYTES_MAX) }, identity: VERIFIED } },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "… and as many annotations as the API server lets an object have can be saved",
    changes: {
      state: "Verifying",
      plan: { workloadRelease: "DeleteNode" },
      seen: { examined: { node: heavyNode(262_144) }, identity: VERIFIED },
    },
    expected: "→ PoweringOff (PoweringOff), forceOff",
  },
  {
    name: "a host that is provisioned is powered on",
    changes: {
      state: "Provisioning",
      attempt: { bootOverride: true },
      seen: { power: PROVEN, override: "NetworkOnce", nodeDeleted: true },
    },
    expected: "→ PoweringOn (Provisioned)",
  },
  {
    name: "a host that reads On is waited for",
    changes: {
      state: "PoweringOn",
      attempt: { orders: 1, sent: true },
      seen: {
        power: READ_ON,
        rebootRecorded: true,
        order: { attemptId: "a1", action: "On", outcome: "Acknowledged", atMs: NOW.monotonicMs - 1_000 },
      },
    },
    expected: "→ Rejoining (PoweredOn)",
  },
  {
    name: "a node that has rejoined, without the quarantine, is waited for until it is Ready",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, quarantineLifted: true, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs } },
      other: { node: node({ bootID: "new-boot" }) },
    },
    expected: "→ Restoring (NodeRejoined)",
  },
  {
    name: "a quarantine that the live node did not allow to be lifted stays",
    changes: {
      state: "Rejoining",
      seen: { devicesClosed: true, quarantineLifted: false, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs } },
      other: { node: node({ bootID: "new-boot" }) },
    },
    expected: "liftQuarantine",
  },
  {
    name: "once all is taken back the verdict is given",
    changes: {
      state: "Undoing",
      attempt: { action: "None" },
      seen: { taintCleared: true, marksCleared: true, devicesClosed: true, hostReleased: true },
    },
    expected: "→ Failed (Failed)",
  },
  {
    name: "a host that is not off in time is given another attempt",
    changes: { state: "PoweringOff", seen: { taintCleared: true, power: READ_ON }, other: { remainingMs: 0 } },
    expected: "→ Verifying (AttemptFailed)",
  },
  {
    name: "a control plane node is never reprovisioned",
    changes: {
      state: "Verifying",
      attempt: { kind: "Reprovision" },
      plan: { type: "Reprovision", requireReboot: false },
      seen: { examined: { node: labelled("node-role.kubernetes.io/control-plane") }, identity: VERIFIED },
    },
    expected: "→ Undoing (ControlPlaneNode)",
  },
  {
    name: "a host is not reprovisioned without a proven reboot of this outage",
    changes: {
      state: "Verifying",
      attempt: { kind: "Reprovision" },
      plan: { type: "Reprovision" },
      seen: { examined: { node: node() }, identity: VERIFIED },
    },
    expected: "→ Undoing (RebootRequired)",
  },
  {
    name: "a node in a new boot that is not Ready is waited for",
    changes: {
      state: "Restoring",
      seen: { devicesClosed: true, hostReleased: true },
      other: { node: node({ bootID: "new-boot" }) },
    },
    expected: "wait",
  },
  {
    name: "an undo asks again who waits for the host, where the answer is old and somebody may",
    changes: {
      state: "Undoing",
      seen: {
        taintCleared: true,
        power: READ_OFF,
        identity: VERIFIED,
        successor: { waiting: false, atMs: NOW.monotonicMs - 2_000 },
      },
      other: {
        siblings: [
          { uid: "b", namespace: "ns", name: "b", waiting: true, succeeded: false, offConfirmedAt: undefined },
        ],
      },
    },
    expected: "checkSuccessor",
  },
  {
    name: "an order whose answer was lost is not sent again: the state tells what came of it",
    changes: {
      state: "PoweringOff",
      seen: {
        taintCleared: true,
        identity: VERIFIED,
        power: READ_ON,
        order: { attemptId: "a1", action: "ForceOff", outcome: "Uncertain", atMs: NOW.monotonicMs - 2_000 },
      },
    },
    expected: "wait",
  },
  {
    name: "an undo believes no On that was read before a power-off had its time",
    changes: {
      state: "Undoing",
      attempt: { done: false },
      seen: {
        taintCleared: true,
        power: { ...READ_ON, last: { state: "On", raw: "On", atMs: NOW.monotonicMs - 5_000 } },
        order: { attemptId: "a1", action: "ForceOff", outcome: "Uncertain", atMs: NOW.monotonicMs - 21_000 },
        successor: NO_SUCCESSOR,
      },
    },
    expected: "readWhole",
  },
  {
    name: "… but the one that is read after it",
    changes: {
      state: "Undoing",
      attempt: { done: false },
      seen: {
        taintCleared: true,
        power: READ_ON,
        order: { attemptId: "a1", action: "ForceOff", outcome: "Uncertain", atMs: NOW.monotonicMs - 21_000 },
        successor: NO_SUCCESSOR,
      },
    },
    expected: "verifyIdentity",
  },
];
