import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import type { Observations } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import type { Snapshot } from "../../../../../../src/remediator/machine/model/facts/snapshot.ts";
import type { SnapshotChanges } from "../../snapshots.ts";
import {
  NOW,
  READ_OFF,
  READ_ON,
  STALE_LEASE,
  UNDOING,
  VERIFIED,
  machineRead,
  node,
  said,
  observationsAfter,
  snapshot,
  stateOf,
  told,
} from "../../snapshots.ts";

// Nodes that came back before a further power-off, and holds: the stop switch holds only power-offs, maintenance holds
// all orders.

const MACHINE: Snapshot["subject"] = {
  nodeName: "n7",
  cluster: undefined,
  machine: { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", namespace: "caps", name: "m1", uid: "m-uid" },
};
/** All devices of the host were read as On. */
const ALL_ON: Observations["power"] = {
  ...READ_ON,
  last: { state: "On", raw: "On", atMs: NOW.monotonicMs - 100, runs: true },
};
const BY_TEST = { reason: "Paused", message: "by a test" } as const;
/** A BMC that does not report the power state. */
const UNTOLD: Observations["power"] = {
  ...READ_ON,
  last: { state: "Unknown", raw: "null", atMs: NOW.monotonicMs - 100 },
};

/** A further power-off is due for a host whose node is Ready in a new boot. */
function returned(observations: Partial<Observations>, other: Partial<Snapshot> = {}): SnapshotChanges {
  const back = node({ ready: "True", bootID: "new-boot" });
  return {
    state: "PoweringOff",
    attempt: { actionAtMs: NOW.epochMs - 126_000 },
    observations: {
      taintCleared: true,
      marksCleared: true,
      identity: VERIFIED,
      examined: { node: back },
      ...observations,
    },
    status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
    other: { node: back, ...other },
  };
}

type Row = { name: string; changes: SnapshotChanges; expected: string };

const RETURNED: readonly Row[] = [
  {
    name: "a node that comes back while a further power-off is held is read live",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 126_000 },
      observations: { taintCleared: true, power: READ_ON },
      other: { hold: BY_TEST, node: node({ ready: "True", bootID: "new-boot" }) },
    },
    expected: "examine",
  },
  {
    name: "a node that came back ends the remediation while power-offs are held",
    changes: returned({ power: ALL_ON }, { hold: BY_TEST }),
    expected: "→ Restoring (BroughtBack)",
  },
  {
    name: "all devices of its host are read before a node that is Ready in a new boot counts as back",
    changes: returned({ power: READ_ON }),
    expected: "readWhole",
  },
  {
    name: "a device that is off while another one is on is powered on by an undo",
    changes: returned({
      power: { ...ALL_ON, last: { state: "Off", raw: "psu-2: Off", atMs: NOW.monotonicMs, runs: true } },
    }),
    expected: "→ Undoing (PowerOnTimeout)",
  },
  {
    name: "a node that is Ready in a new boot with its host on is not powered off again",
    changes: returned({ power: ALL_ON }),
    expected: "→ Restoring (BroughtBack)",
  },
  {
    name: "the marks of a node that came back are removed first",
    changes: returned({ power: ALL_ON, marksCleared: false }),
    expected: "clearMarks",
  },
  {
    name: "a node that is Ready in a new boot is powered off again if its host reads Off twice",
    changes: { ...returned({ power: { ...READ_OFF, offReads: 2 } }), attempt: { sent: false } },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "one Off reading does not outweigh a node that is Ready in a new boot",
    changes: { ...returned({ power: READ_OFF }), attempt: { sent: false } },
    expected: "readPower",
  },
  {
    name: "an unknown power state does not outweigh a node that is Ready in a new boot",
    changes: { ...returned({ power: UNTOLD }), attempt: { done: true, offConfirmedAtMs: NOW.epochMs - 1_000 } },
    expected: "wait",
  },
  {
    name: "an old On reading is renewed before a node counts as back",
    changes: returned({ power: { ...READ_ON, last: { state: "On", raw: "On", atMs: NOW.monotonicMs - 6_000 } } }),
    expected: "readPower",
  },
  {
    name: "the boot in which the remediation began shows that a node came back",
    changes: {
      ...returned({ power: ALL_ON }),
      status: { node: { name: "n1", uid: "node-uid", bootID: "new-boot", bootIDAtStart: "old-boot", wasReady: false } },
    },
    expected: "→ Restoring (BroughtBack)",
  },
  {
    name: "a read for another order does not count before a further power-off",
    changes: returned({ power: READ_ON, examined: undefined }),
    expected: "examine",
  },
];

const HELD: readonly Row[] = [
  {
    name: "the stop switch does not hold a power-on",
    changes: { state: "PoweringOn", observations: { identity: VERIFIED }, other: { hold: BY_TEST } },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "a further power-off that is held does not run out of time",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 126_000 },
      observations: { taintCleared: true, power: READ_ON },
      other: { remainingMs: 0, hold: BY_TEST },
    },
    expected: "stay (Paused)",
  },
  {
    name: "the deadline starts again once a held power-off may be sent",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 126_000 },
      observations: { taintCleared: true, power: READ_ON },
      status: { conditions: [said("Paused", "by a test")] },
      other: { remainingMs: 0 },
    },
    expected: "stay (Resumed)",
  },
  {
    name: "an undo powers on a host that earlier orders left off while power-offs are held",
    changes: {
      state: "Verifying",
      attempt: { action: "On", sent: true, done: false },
      observations: { power: READ_OFF },
      other: { hold: BY_TEST },
    },
    expected: "→ Undoing (Paused)",
  },
  {
    name: "the power is read before a held remediation powers its host on",
    changes: { state: "Verifying", attempt: { action: "ForceOff", sent: true }, other: { hold: BY_TEST } },
    expected: "readPower",
  },
  {
    name: "a held remediation waits if its host reads On",
    changes: {
      state: "Verifying",
      attempt: { action: "ForceOff", sent: true },
      observations: { power: READ_ON },
      other: { hold: BY_TEST },
    },
    expected: "stay (Paused)",
  },
  {
    name: "a held remediation leaves its host off during maintenance",
    changes: {
      state: "Verifying",
      attempt: { action: "ForceOff", sent: true },
      observations: { power: READ_OFF },
      other: { hold: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "stay (Maintenance)",
  },
  {
    name: "a host that its last owner may have left off is claimed while power orders are paused",
    changes: {
      state: "Resolving",
      attempt: { action: "Inherited" },
      observations: { claim: undefined },
      other: { hold: BY_TEST },
    },
    expected: "claimHost",
  },
  {
    name: "a host is powered on instead of handed over while its successor may not power it off",
    changes: {
      state: "Undoing",
      observations: {
        ...UNDOING,
        power: READ_OFF,
        identity: VERIFIED,
        successor: { waiting: true, atMs: NOW.monotonicMs },
      },
      other: { hold: BY_TEST },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "a hold that a live read found is read again, since the watch is late",
    changes: {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 126_000 },
      observations: {
        taintCleared: true,
        power: READ_ON,
        hold: { found: BY_TEST, failed: false, atMs: NOW.monotonicMs - 6_000 },
      },
      status: { conditions: [said("Paused", "by a test")] },
      other: { hold: BY_TEST },
    },
    expected: "readHolds",
  },
];

for (const [what, rows] of [
  ["a node that came back", RETURNED],
  ["a power order that is held", HELD],
] as const) {
  describe(what, () => {
    for (const { name, changes, expected } of rows) {
      it(name, () => assert.equal(told(decide(snapshot(changes), NOW), changes.state), expected));
    }
  });
}

describe("what a further power-off rests on", () => {
  it("a further power-off needs its own check of the identity, not one that was made for another purpose", () => {
    const observations = { ...snapshot({ state: "Provisioning" }).observations, identity: VERIFIED };
    const to = stateOf("PoweringOff");
    assert.equal(observationsAfter(observations, stateOf("Provisioning"), to).identity, undefined);
    assert.equal(observationsAfter(observations, stateOf("Verifying"), to).identity, VERIFIED);
  });

  it("a further power-off of a Machine that had no node uses the node that it has become", () => {
    const changes: SnapshotChanges = {
      state: "PoweringOff",
      attempt: { actionAtMs: NOW.epochMs - 130_000 },
      observations: {
        taintCleared: true,
        marksCleared: true,
        power: ALL_ON,
        identity: VERIFIED,
        examined: { node: undefined },
        ...machineRead("n7"),
      },
      status: { node: { wasReady: false } },
      other: { subject: { ...MACHINE, nodeName: undefined } },
    };
    assert.equal(told(decide(snapshot(changes), NOW), "PoweringOff"), "stay (NodeNamed)");
    const lease = { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 5_000 };
    const named = { ...changes.observations, examined: { node: node({ ready: "True" }) }, lease };
    const after = {
      ...changes,
      observations: named,
      status: { node: { name: "n7", wasReady: false } },
      other: { subject: MACHINE },
    };
    assert.equal(told(decide(snapshot(after), NOW), "PoweringOff"), "→ Restoring (BroughtBack)");
    const stale = { ...after, observations: { ...named, lease: STALE_LEASE } };
    assert.equal(told(decide(snapshot(stale), NOW), "PoweringOff"), "stay (PoweringOffAgain), forceOff");
  });

  for (const [what, jumpMs, renewedAgoMs, expected] of [
    [
      "on a clock that was set back is not powered off if it renews its lease",
      600_000,
      5_000,
      "→ Restoring (BroughtBack)",
    ],
    [
      "on a clock that was set forward does not count as back because of an earlier renewal",
      -600_000,
      200_000,
      "stay (PoweringOffAgain), forceOff",
    ],
  ] as const)
    it(`a Machine that has become a node since a power-off of an agent ${what}`, () => {
      const changes: SnapshotChanges = {
        state: "PoweringOff",
        attempt: { actionAtMs: NOW.epochMs - 130_000 + jumpMs },
        observations: {
          taintCleared: true,
          marksCleared: true,
          power: ALL_ON,
          identity: VERIFIED,
          ...machineRead("n7"),
          examined: { node: node({ ready: "True" }) },
          lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - renewedAgoMs },
        },
        status: { node: { name: "n7", wasReady: false } },
        other: {
          subject: MACHINE,
          intentAtMs: NOW.monotonicMs - 130_000,
          intentSeenAtMs: NOW.monotonicMs - 130_000,
        },
      };
      assert.equal(told(decide(snapshot(changes), NOW), "PoweringOff"), expected);
    });
});
