import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../src/remediator/machine/decide.ts";
import { ORDERS_MAX } from "../../../../../src/remediator/machine/rules/orders/power-orders.ts";
import type { Sibling } from "../../../../../src/remediator/machine/model/facts/snapshot.ts";
import type { SnapshotChanges } from "../snapshots.ts";
import {
  announced,
  MISMATCH,
  node,
  NOW,
  ordered,
  OWNER,
  READ_OFF,
  READ_ON,
  said,
  SET,
  snapshot,
  TARGET_GONE,
  told,
  UNDOING,
  VERIFIED,
} from "../snapshots.ts";

// What an undo reverts, what it waits for, and what it must not rely on, with one case each.

const ON = { action: "On" } as const;
const BACKUP = { nodeUID: "node-uid", labels: { rack: "r7" } };
/** Another remediation waits for the host. */
const SUCCESSOR = { waiting: true, atMs: NOW.monotonicMs };
const OWN = snapshot({ state: "Undoing" }).host;
const TAKEN_BACK = OWN.found ? { ...OWN, facts: { ...OWN.facts, takenBack: "its operator" } } : OWN;
/** The changes for a remediation that is being deleted and has deleted its Node. */
const NODE_DELETED: SnapshotChanges = {
  state: "Undoing",
  attempt: { action: "On", done: true },
  remediation: { deleting: true },
  observations: UNDOING,
  status: { conditions: [announced()], backup: BACKUP },
  other: { node: undefined },
};

const CASES: readonly { name: string; changes: SnapshotChanges; expected: string }[] = [
  {
    name: "a successor is handed no host that boots from the network next",
    changes: {
      state: "Undoing",
      attempt: { bootOverride: true },
      observations: { taintCleared: true, successor: SUCCESSOR },
    },
    expected: "setBootOverride None",
  },
  {
    name: "an unknown boot override does not count as cleared",
    changes: { state: "Undoing", attempt: { bootOverride: true }, observations: UNDOING },
    expected: "setBootOverride None",
  },
  {
    name: "a remediation that is being deleted powers its host on, however late: no other program would",
    changes: {
      state: "Undoing",
      remediation: { deleting: true },
      observations: { ...UNDOING, power: READ_OFF, identity: VERIFIED },
      other: { remainingMs: 0 },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo that maintenance holds back does not run out of its time",
    changes: {
      state: "Undoing",
      observations: { ...UNDOING, power: READ_OFF },
      other: { remainingMs: 0, hold: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "stay (Maintenance)",
  },
  {
    name: "an undo powers on no other host",
    changes: {
      state: "Undoing",
      observations: {
        ...UNDOING,
        power: READ_OFF,
        identity: MISMATCH,
      },
    },
    expected: "stay (IdentityMismatch)",
  },
  {
    name: "an undo powers on a host that reads On, since its BMC may show an old state",
    changes: { state: "Undoing", observations: { ...UNDOING, power: READ_ON, identity: VERIFIED } },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo believes the On that it reads after its power-on",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false },
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED, order: ordered("Acknowledged", 3_000, ON) },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo believes the On that it reads after its power-on was refused",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false },
      observations: {
        ...UNDOING,
        power: READ_ON,
        identity: VERIFIED,
        order: ordered("Rejected", 3_000, { ...ON, problem: { reason: "BMCRefused", message: "on", final: false } }),
      },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo does not believe an On that it reads after a power-on that was not sent",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false },
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED, order: ordered("Rejected", 3_000, ON) },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo does not believe an On if only the intent to power on is known",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false },
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo powers on a host that reads On no more often than one that reads Off",
    changes: {
      state: "Undoing",
      attempt: { action: "On", done: false, orders: ORDERS_MAX },
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo does not power on a host whose only power-off was refused",
    changes: {
      state: "Undoing",
      observations: {
        ...UNDOING,
        power: READ_ON,
        order: { attemptId: "a1", action: "ForceOff", outcome: "Rejected", atMs: NOW.monotonicMs - 30_000 },
      },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo powers on a host whose last power-off was refused after an earlier one",
    changes: {
      state: "Undoing",
      attempt: { orders: 2 },
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED, order: ordered("Rejected", 30_000) },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo powers on a host whose power-off was refused after an earlier power cycle",
    changes: {
      state: "Undoing",
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED, order: ordered("Rejected", 30_000) },
      status: { retryCount: 1 },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo powers on a host whose power-off was refused after one whose connection broke",
    changes: {
      state: "Undoing",
      observations: {
        ...UNDOING,
        power: READ_ON,
        identity: VERIFIED,
        order: ordered("Rejected", 30_000, { earlierEffectAtMs: NOW.monotonicMs - 40_000 }),
      },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo does not power on a host that reads On with another identity",
    changes: { state: "Undoing", observations: { ...UNDOING, power: READ_ON, identity: MISMATCH } },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo does not power on a host that reads On during maintenance",
    changes: {
      state: "Undoing",
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED },
      other: { hold: { reason: "Maintenance", message: "by a test" } },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo believes an On when its time is over",
    changes: { state: "Undoing", observations: { ...UNDOING, power: READ_ON }, other: { remainingMs: 0 } },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo does not power on a host that was released before",
    changes: {
      state: "Undoing",
      observations: { ...UNDOING, power: READ_OFF, identity: VERIFIED, hostReleased: true },
    },
    expected: "clearMarks",
  },
  {
    name: "a remediation that inherits a host claims it again while the owner undoes its work",
    changes: {
      state: "Undoing",
      attempt: { action: "Inherited" },
      observations: {
        taintCleared: true,
        claim: { owned: false, by: OWNER, undoing: true, atMs: NOW.monotonicMs - 2_000 },
      },
    },
    expected: "claimHost",
  },
  {
    name: "a remediation that waits for its host's owner reports that once its own time is over",
    changes: {
      state: "Undoing",
      attempt: { action: "Inherited" },
      observations: {
        taintCleared: true,
        claim: { owned: false, by: OWNER, undoing: true, atMs: NOW.monotonicMs - 500 },
      },
      other: { remainingMs: 0 },
    },
    expected: "stay (HostBusy)",
  },
  {
    name: "a power-on that a slow device has just sent gets time before it counts as without effect",
    changes: {
      state: "Undoing",
      attempt: { action: "On", actionAtMs: NOW.epochMs - 2_000, sent: true, done: false },
      remediation: { deleting: true },
      observations: {
        ...UNDOING,
        power: { ...READ_OFF, last: { state: "Off", raw: "Off", atMs: NOW.monotonicMs } },
        identity: VERIFIED,
        order: { attemptId: "a1", action: "On", outcome: "Acknowledged", atMs: NOW.monotonicMs - 2_000 },
      },
      other: { remainingMs: 0 },
    },
    expected: "wait",
  },
  {
    name: "a remediation that inherits a host does not wait for an owner that continues",
    changes: {
      state: "Undoing",
      attempt: { action: "Inherited" },
      observations: {
        taintCleared: true,
        claim: { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs - 2_000 },
      },
    },
    expected: "clearMarks",
  },
  {
    name: "a remediation that lost its host after its own order does not wait for the owner",
    changes: {
      state: "Undoing",
      attempt: { action: "ForceOff" },
      observations: {
        taintCleared: true,
        claim: { owned: false, by: OWNER, undoing: true, atMs: NOW.monotonicMs - 2_000 },
      },
    },
    expected: "clearMarks",
  },
  {
    name: "a remediation that is being deleted waits for the Node that it deleted",
    changes: NODE_DELETED,
    expected: "wait",
  },
  {
    name: "a remediation that is being deleted stops waiting for its Node when its time is over",
    changes: { ...NODE_DELETED, other: { node: undefined, remainingMs: 0 } },
    expected: "clearMarks",
  },
  {
    name: "a remediation that is being deleted does not wait for the Node of a deleted Machine",
    changes: {
      ...NODE_DELETED,
      status: { ...NODE_DELETED.status, replacement: { owner: SET, deletedAt: "2026-01-01T11:00:00Z" } },
    },
    expected: "clearMarks",
  },
  {
    name: "a remediation that is being deleted does not wait for its Node if a successor keeps the labels",
    changes: { ...NODE_DELETED, observations: { ...UNDOING, successor: SUCCESSOR } },
    expected: "clearMarks",
  },
  {
    name: "a remediation that is not being deleted keeps the labels and does not wait for its Node",
    changes: { ...NODE_DELETED, remediation: {} },
    expected: "clearMarks",
  },
  {
    name: "the Node that was to be deleted does not count as the one that joins",
    changes: { ...NODE_DELETED, other: { node: node({ uid: BACKUP.nodeUID }) } },
    expected: "wait",
  },
  {
    name: "a Node that joins during an undo gets its labels back before the marks are removed",
    changes: { ...NODE_DELETED, other: { node: node({ uid: "new-uid" }) } },
    expected: "restoreNode",
  },
  {
    name: "a Node that joins during an undo is reported once it has its labels",
    changes: {
      ...NODE_DELETED,
      observations: { ...UNDOING, restoredUid: "new-uid" },
      other: { node: node({ uid: "new-uid" }) },
    },
    expected: "stay (NodeRejoined)",
  },
  {
    name: "a Node that is reported to have joined is not waited for again",
    changes: {
      ...NODE_DELETED,
      status: { conditions: [{ ...announced(), status: "False", reason: "NodeRejoined" }], backup: BACKUP },
    },
    expected: "clearMarks",
  },
  {
    name: "an undo believes an On at once if the only power-off was refused",
    changes: {
      state: "Undoing",
      attempt: { done: false },
      observations: { ...UNDOING, power: READ_ON, order: ordered("Rejected", 3_000) },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo does not believe an On at once if an earlier power cycle may still take effect",
    changes: {
      state: "Undoing",
      attempt: { done: false },
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED, order: ordered("Rejected", 3_000) },
      status: { retryCount: 1 },
    },
    expected: "wait",
  },
  {
    name: "an undo powers a host on once a power-off whose connection broke has had its time",
    changes: {
      state: "Undoing",
      attempt: { done: false, orders: 2 },
      observations: {
        ...UNDOING,
        power: READ_ON,
        identity: VERIFIED,
        order: ordered("Rejected", 3_000, { earlierEffectAtMs: NOW.monotonicMs - 126_000 }),
      },
    },
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo does not power on a host that reads On if its operator powers it now",
    changes: {
      state: "Undoing",
      observations: { ...UNDOING, power: READ_ON, identity: VERIFIED },
      other: { host: TAKEN_BACK },
    },
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo waits for a deleted target if it owes only a boot override",
    changes: {
      state: "Undoing",
      attempt: { action: "None", bootOverride: true },
      observations: { taintCleared: true },
      other: { host: TARGET_GONE },
    },
    expected: "stay (TargetGone)",
  },
  {
    name: "an undo does not wait for a deleted target whose host it only inherited",
    changes: {
      state: "Undoing",
      attempt: { action: "Inherited" },
      observations: { taintCleared: true },
      other: { host: TARGET_GONE },
    },
    expected: "clearMarks",
  },
  {
    name: "an undo does not wait for a deleted target if it owes nothing",
    changes: {
      state: "Undoing",
      attempt: { action: "None" },
      observations: { taintCleared: true, claim: undefined },
      other: { host: TARGET_GONE },
    },
    expected: "clearMarks",
  },
  {
    name: "an undo that owes no power clears the boot override without looking for a successor",
    changes: {
      state: "Undoing",
      attempt: { action: "None", bootOverride: true },
      observations: { taintCleared: true },
    },
    expected: "setBootOverride None",
  },
  {
    name: "an undo that has read no boot override reports it as cleared",
    changes: {
      state: "Undoing",
      attempt: { action: "None", bootOverride: true },
      observations: { taintCleared: true, override: "None" },
    },
    expected: "stay (BootOverrideCleared)",
  },
  {
    name: "an undo that was paused continues afterwards, although its time is over",
    changes: {
      state: "Undoing",
      observations: UNDOING,
      status: { conditions: [said("Paused", "")] },
      other: { remainingMs: 0 },
    },
    expected: "stay (Resumed)",
  },
  {
    name: "an old read of the queue for the host is not repeated if no remediation waits",
    changes: {
      state: "Undoing",
      observations: { ...UNDOING, successor: { waiting: false, atMs: NOW.monotonicMs - 60_000 } },
    },
    expected: "readWhole",
  },
  {
    name: "the remediations that wait for the host are not read again while the last read is fresh",
    changes: { state: "Undoing", observations: UNDOING, other: { siblings: [waitingSibling()] } },
    expected: "readWhole",
  },
  {
    name: "a deleted remediation loses its finalizer once everything is undone",
    changes: {
      state: "Undoing",
      attempt: { ...ON, done: true },
      outcome: { verdict: "Deleted", reason: "RemediationDeleted", message: "it was deleted" },
      observations: { ...UNDOING, marksCleared: true, devicesClosed: true, hostReleased: true },
    },
    expected: "dropFinalizer",
  },
];

describe("an undo", () => {
  for (const { name, changes, expected } of CASES) {
    it(name, () => assert.equal(told(decide(snapshot(changes), NOW), changes.state), expected));
  }

  for (const [what, waiting] of [
    ["an undo hands the host over as it is to the remediation that waits for it", true],
    ["an undo leaves no off request on a host that no remediation waits for", false],
  ] as const) {
    it(what, () => {
      const observations = {
        ...UNDOING,
        marksCleared: true,
        devicesClosed: true,
        successor: { ...SUCCESSOR, waiting },
      };
      const { effects } = decide(snapshot({ state: "Undoing", attempt: { ...ON, done: true }, observations }), NOW);
      assert.deepEqual(effects, [{ do: "releaseHost", asItIs: waiting }]);
    });
  }

  it("an undo leaves a hold on the host of a Cluster that was deleted: its node may live on elsewhere with our taint", () => {
    const observations = { cluster: { gone: true, atMs: NOW.monotonicMs }, devicesClosed: true };
    const other = { clusterProblem: { reason: "ClusterUnreachable", message: "it is gone" } } as const;
    const released = (taintCleared: boolean) => {
      const attempt = { action: taintCleared ? "On" : "ForceOff", done: true } as const;
      return decide(
        snapshot({ state: "Undoing", attempt, observations: { ...observations, taintCleared }, other }),
        NOW,
      ).effects;
    };
    assert.deepEqual(released(false), [{ do: "releaseHost", asItIs: true }]);
    assert.deepEqual(released(true), [{ do: "releaseHost", asItIs: false }]);
  });

  it("an undo asks again for the host that it was to inherit once a second", () => {
    const claim = { owned: false, by: OWNER, undoing: true, atMs: NOW.monotonicMs - 300 } as const;
    const observations = { taintCleared: true, claim };
    const { effects, nextCheckMs } = decide(
      snapshot({ state: "Undoing", attempt: { action: "Inherited" }, observations }),
      NOW,
    );
    assert.deepEqual([effects, nextCheckMs], [[], 700]);
  });

  it("an undo says in its verdict who powers the host on", () => {
    const ended = { ...UNDOING, marksCleared: true, devicesClosed: true, hostReleased: true };
    const verdict = (changes: Partial<SnapshotChanges>): string => {
      const { status } = decide(snapshot({ state: "Undoing", observations: ended, ...changes }), NOW);
      return status?.conditions?.find(({ type }) => type === "Succeeded")?.message ?? "";
    };
    assert.match(verdict({}), /; the host may still be OFF: power it on by hand$/u);
    assert.match(verdict({ observations: { ...ended, successor: SUCCESSOR } }), /; the host is handed over as it is/u);
    assert.equal(verdict({ attempt: { ...ON, done: true } }), "it failed");
    const target = { kind: "BareMetalHost", namespace: "metal3", name: "h1", uid: "h" };
    const other = { host: TARGET_GONE, remainingMs: 0 };
    assert.match(
      verdict({ status: { target }, other }),
      /: remove annotation \S+ from BareMetalHost metal3\/h1 by hand/u,
    );
    assert.match(verdict({ status: { target } }), /: power it on by hand$/u);
  });
});

function waitingSibling(): Sibling {
  return { uid: "s", namespace: "ns", name: "s", waiting: true, succeeded: false, offConfirmedAt: undefined };
}
