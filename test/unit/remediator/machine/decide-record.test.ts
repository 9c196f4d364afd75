import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Condition } from "../../../../src/api/schema/meta.ts";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import { ORDERS_MAX } from "../../../../src/remediator/machine/rules/orders/power-orders.ts";
import type { Observations } from "../../../../src/remediator/machine/model/facts/observations.ts";
import {
  DEVICE_FINAL_RETRY_MS,
  REQUEST_AGE_MAX_MS,
} from "../../../../src/remediator/machine/model/decision/timings.ts";
import type { Snapshot } from "../../../../src/remediator/machine/model/facts/snapshot.ts";
import type { SnapshotChanges } from "./snapshots.ts";
import {
  announced,
  machineRead,
  node,
  NOW,
  ordered,
  OWNER,
  READ_OFF,
  READ_ON,
  REFUSED_FOR_GOOD,
  said,
  snapshot,
  STALE_LEASE,
  told,
  UNDOING,
  VERIFIED,
} from "./snapshots.ts";

// What a decision stores in the status, from which any process can continue.

describe("the status that a decision stores", () => {
  const attemptOf = (changes: SnapshotChanges) => decide(snapshot(changes), NOW).status?.attempt;

  it("a remediation that waits for a host is stored as one that may get it while it is off, also at its beginning", () => {
    const claim = { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } as const;
    assert.equal(attemptOf({ state: "Resolving", observations: { claim } })?.action, "Inherited");
    assert.equal(attemptOf({ state: "Resolving", attempt: { action: "Inherited" } })?.action, "Inherited");
  });

  it("the next attempt carries over what the last one did to the host's power and boot", () => {
    const changes = { state: "PoweringOff", attempt: { bootOverride: true }, other: { remainingMs: 0 } } as const;
    const { action, sent, bootOverride, orders } =
      attemptOf({ ...changes, observations: { taintCleared: true } }) ?? {};
    assert.deepEqual(
      { action, sent, bootOverride, orders },
      { action: "ForceOff", sent: true, bootOverride: true, orders: 0 },
    );
  });

  it("the boot of the node is stored before the first order", () => {
    const examined = { node: node({ bootID: "boot-2" }) };
    const { status } = decide(snapshot({ state: "Verifying", observations: { examined, identity: VERIFIED } }), NOW);
    assert.equal(status?.node?.bootID, "boot-2");
  });

  it("the intent of every order is stored as neither sent nor done", () => {
    const off = attemptOf({ state: "Verifying", observations: { examined: { node: node() }, identity: VERIFIED } });
    const on = attemptOf({ state: "Undoing", observations: { ...UNDOING, power: READ_OFF, identity: VERIFIED } });
    assert.deepEqual([off?.action, off?.sent, off?.done], ["ForceOff", false, false]);
    assert.deepEqual([on?.action, on?.sent, on?.done], ["On", false, false]);
  });

  it("a further order keeps the stored boot that the first one ends", () => {
    const { status } = decide(
      snapshot({
        state: "PoweringOff",
        attempt: { actionAtMs: NOW.epochMs - 21_000 },
        observations: {
          taintCleared: true,
          power: READ_ON,
          identity: VERIFIED,
          examined: { node: node({ bootID: "boot-2" }) },
        },
      }),
      NOW,
    );
    assert.deepEqual([status?.attempt?.id, status?.node?.bootID], ["fresh", "old-boot"]);
  });

  it("an id that is chosen here is stored with the ownership taint, and no other id is", () => {
    const reorder = {
      state: "PoweringOff",
      observations: { taintCleared: true, power: READ_ON, identity: VERIFIED, examined: { node: node() } },
    } as const;
    const taken = { secondTaint: false, actionAtMs: NOW.epochMs - 21_000 };
    const first = attemptOf({
      state: "Verifying",
      attempt: taken,
      observations: { ...reorder.observations, taintCleared: false },
    });
    const further = attemptOf({ ...reorder, attempt: taken });
    const next = attemptOf({ ...reorder, attempt: taken, other: { remainingMs: 0 } });
    assert.deepEqual(
      [first, further, next].map((stored) => [stored?.id, stored?.secondTaint]),
      [
        ["a1", undefined],
        ["fresh", true],
        ["fresh", true],
      ],
    );
  });

  it("further orders get no more time than the first one had", () => {
    const deadlineMs = NOW.epochMs + 7_000;
    const again = attemptOf({
      state: "PoweringOff",
      attempt: { deadlineMs, actionAtMs: NOW.epochMs - 21_000 },
      observations: { taintCleared: true, power: READ_ON, identity: VERIFIED, examined: { node: node() } },
    });
    assert.equal(again?.action, "ForceOff");
    assert.equal(Date.parse(again?.deadline ?? ""), deadlineMs);
  });

  it("the stored count of orders begins again with each power cycle", () => {
    const observations = { examined: { node: node() }, identity: VERIFIED };
    assert.equal(
      attemptOf({ state: "Verifying", attempt: { action: "ForceOff", orders: 3 }, observations })?.orders,
      1,
    );
  });

  it("the stored count of power-ons begins with the first one, whatever the power-off took", () => {
    const attempt = { action: "ForceOff", done: true, orders: 3 } as const;
    const observations = { ...UNDOING, power: READ_OFF, identity: VERIFIED };
    assert.equal(attemptOf({ state: "Undoing", attempt, observations })?.action, "On");
    assert.equal(attemptOf({ state: "Undoing", attempt, observations })?.orders, 1);
  });

  it("the status counts the power cycles that begin after the first", () => {
    const changes = { strategy: { retryLimit: 2 }, status: { retryCount: 1 }, observations: { taintCleared: true } };
    const failing = snapshot({ state: "PoweringOff", ...changes, other: { remainingMs: 0 } });
    assert.equal(decide(failing, NOW).status?.retryCount, 2);
  });

  it("a first attempt is stored as one without an order", () => {
    const beginning = {
      ...snapshot({ state: "Resolving" }),
      state: { name: "Resolving", attempt: undefined },
    } as const;
    const { status } = decide(beginning, NOW);
    const { action, actionAt = "", sent, done, bootOverride } = status?.attempt ?? {};
    assert.deepEqual(
      { action, actionAtMs: Date.parse(actionAt), sent, done, bootOverride },
      { action: "None", actionAtMs: NOW.epochMs, sent: false, done: false, bootOverride: false },
    );
  });

  it("an undo keeps what the attempt that it ends has done, and how often it was ordered off", () => {
    const attempt = { kind: "Reprovision", bootOverride: true, orders: 2 } as const;
    const undone = attemptOf({ state: "PoweringOff", attempt, remediation: { deleting: true } });
    const { id, kind, action, orders, sent, bootOverride } = undone ?? {};
    assert.deepEqual(
      { id, kind, action, orders, sent, bootOverride },
      { id: "a1", kind: "Reprovision", action: "ForceOff", orders: 2, sent: true, bootOverride: true },
    );
  });

  it("the stored count of orders excludes a refused order, and keeps those before it", () => {
    const observations = {
      taintCleared: true,
      order: ordered("Rejected", 3_000),
      identity: VERIFIED,
      examined: { node: node() },
    };
    assert.equal(attemptOf({ state: "PoweringOff", attempt: { orders: 3 }, observations })?.orders, 3);
  });

  it("a host that is no longer off is not stored as off, neither in its power state nor in its condition", () => {
    const { status } = decide(
      snapshot({ state: "Releasing", observations: { taintCleared: true, power: READ_ON } }),
      NOW,
    );
    const condition = status?.conditions?.find(({ type }) => type === "PowerOffConfirmed");
    assert.deepEqual([status?.phase, condition?.status], ["PoweringOff", "False"]);
  });

  it("an undo gets all its Ons, and, for a device that refused permanently, time for one more try", () => {
    const deleting = { remediation: { deleting: true } };
    assert.equal(attemptOf({ state: "PoweringOn", attempt: { orders: 4 }, ...deleting })?.orders, 0);
    const given = (device: Observations["device"]): number =>
      Date.parse(attemptOf({ state: "PoweringOff", observations: { device }, ...deleting })?.deadline ?? "") -
      NOW.epochMs;
    assert.equal(given(REFUSED_FOR_GOOD) - given(undefined), DEVICE_FINAL_RETRY_MS);
  });

  for (const state of ["PoweringOn", "Undoing"] as const) {
    for (const reason of ["Paused", "Maintenance"]) {
      it(`the state ${state} gets its whole time once it continues after a hold (${reason})`, () => {
        const resumed = attemptOf({
          state,
          attempt: { deadlineMs: NOW.epochMs - 1_000 },
          observations: { ...UNDOING, identity: VERIFIED },
          status: { conditions: [said(reason, "")] },
          strategy: { powerOnTimeoutMs: 90_000 },
        });
        assert.equal(Date.parse(resumed?.deadline ?? ""), NOW.epochMs + 90_000);
      });
    }
  }

  it("a reason to wait is reported again only when its message changes", () => {
    const device = { ...REFUSED_FOR_GOOD, final: false };
    const wait = (message: string) =>
      decide(
        snapshot({
          state: "PoweringOff",
          observations: { taintCleared: true, device },
          status: { conditions: [said(device.reason, message)] },
        }),
        NOW,
      ).notes.length;
    assert.deepEqual([wait(device.message), wait("something else")], [0, 1]);
  });

  it("the readiness of a node that waits for its host is stored as it was when the wait began", () => {
    const claim = { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } as const;
    const recordOf = (changes: Partial<SnapshotChanges>) =>
      decide(snapshot({ state: "Resolving", observations: { claim }, status: {}, ...changes }), NOW).status?.node;
    const there = { zone: "z1", node: node({ ready: "True", bootID: "boot-2" }) };
    const first = { node: undefined };
    const begun = {
      name: "n1",
      uid: "node-uid",
      bootID: "boot-2",
      bootIDAtStart: "boot-2",
      wasReady: true,
      zone: "z1",
    };
    assert.deepEqual(recordOf({ status: first, other: there }), begun);
    const waited = { name: "n1", uid: "node-uid", bootID: "boot-1", wasReady: false };
    assert.deepEqual(recordOf({ status: { node: waited }, other: there }), { ...waited, zone: "z1" });
  });

  it("a Node that was deleted before anything was stored is fenced if the creator of a new remediation recorded it", () => {
    const request = { isReady: false, isFoundUnhealthy: false, atMs: NOW.monotonicMs };
    const decided = (remediation: Partial<Snapshot["remediation"]>, admission: Snapshot["admission"]) => {
      const other = { node: undefined, admission };
      const changes = { status: { node: undefined }, observations: { request }, other };
      return decide(snapshot({ state: "Resolving", remediation, ...changes }), NOW).status;
    };
    const waiting = { granted: false, reason: "WaitingForTurn", message: "third" } as const;
    for (const readyInBoot of ["", "boot-1"]) {
      assert.deepEqual(decided({ readyInBoot }, waiting)?.node, { name: "n1", wasReady: false });
      assert.equal(decided({ readyInBoot }, { granted: true })?.phase, "Verifying");
    }
    for (const remediation of [
      {},
      { ageMs: REQUEST_AGE_MAX_MS, readyInBoot: "" },
      { isRestored: true, readyInBoot: "" },
    ]) {
      const status = decided(remediation, undefined);
      assert.deepEqual([status?.timeline?.at(-1)?.step, status?.node], ["NodeNotFound", undefined]);
    }
  });

  it("a Node that was deleted before anything was stored is stored as the creator of its remediation recorded it", () => {
    const nodeAtCreation = { uid: "deleted-uid", bootID: "boot-1", zone: "z1" };
    const stored = (status: Snapshot["status"], other: Partial<Snapshot>) => {
      const admission = { granted: false, reason: "WaitingForTurn", message: "third" } as const;
      const remediation = { readyInBoot: "", nodeAtCreation };
      return decide(snapshot({ state: "Resolving", remediation, status, other: { admission, ...other } }), NOW).status
        ?.node;
    };
    const gone = { node: undefined };
    const record = { uid: "deleted-uid", bootID: "boot-1", bootIDAtStart: "boot-1", wasReady: false, zone: "z1" };
    assert.deepEqual(stored({ node: undefined }, gone), { name: "n1", ...record });
    const waited = { name: "n1", uid: "node-uid", bootID: "boot-2", bootIDAtStart: "boot-2", wasReady: true };
    assert.deepEqual(stored({ node: waited }, gone), waited, "what is stored counts");
    const there = { node: node({ bootID: "boot-3" }) };
    const present = { name: "n1", uid: "node-uid", bootID: "boot-3", bootIDAtStart: "boot-3", wasReady: false };
    assert.deepEqual(stored({ node: undefined }, there), present, "a Node that joined since counts");
  });

  it("a node that was not Ready when its health check created the remediation, or was in another boot, is stored as not Ready", () => {
    const there = node({ ready: "True", bootID: "boot-2" });
    const wasReady = (readyInBoot: string | undefined, isConfirmed = false) => {
      const admission = { granted: false, reason: "WaitingForTurn", message: "third" } as const;
      const fresh = snapshot({ state: "Resolving", status: { node: undefined }, other: { admission, node: there } });
      const remediation = { ...fresh.remediation, readyInBoot, isConfirmed };
      return decide({ ...fresh, remediation }, NOW).status?.node?.wasReady;
    };
    assert.equal(wasReady(undefined), true);
    assert.equal(wasReady(""), false);
    assert.equal(wasReady("boot-1"), false);
    assert.equal(wasReady("boot-2"), true);
    assert.equal(wasReady("boot-1", true), true);
  });

  it("a host that this remediation has ordered off is not stored as inherited", () => {
    const claim = { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } as const;
    const attempt = { action: "ForceOff" } as const;
    assert.equal(attemptOf({ state: "Resolving", attempt, observations: { claim } })?.action, "ForceOff");
  });

  it("the status shows whether the node was Ready, also while it waits for admission, and then inherits no host", () => {
    const other = { admission: { granted: false, reason: "WaitingForTurn", message: "third" } } as const;
    const fresh = snapshot({ state: "Resolving", other });
    const begun = decide({ ...fresh, status: { phase: "Resolving" } }, NOW).status;
    assert.deepEqual([begun?.node?.wasReady, begun?.node?.uid, begun?.attempt?.action], [false, "node-uid", "None"]);
  });

  it("the node of a Machine is stored with its cluster", () => {
    const fresh = snapshot({
      state: "Resolving",
      observations: machineRead("n1"),
      other: { unresolved: true, clusterUid: "c" },
    });
    const { status } = decide({ ...fresh, status: {} }, NOW);
    assert.deepEqual(status?.node, { name: "n1", cluster: { namespace: "caps", name: "w1", uid: "c" } });
    assert.equal(status?.machine?.uid, "m-uid");
    assert.equal(status?.attempt?.id, "a1");
  });

  it("a Machine's cluster is stored as the agent's own only if the operator has set it", () => {
    const observations = machineRead(undefined);
    const of = (ids: { clusterUid?: string; isOwnCluster?: boolean }) =>
      decide(
        { ...snapshot({ state: "Resolving", observations, other: { unresolved: true, ...ids } }), status: {} },
        NOW,
      ).status?.node;
    const cluster = { namespace: "caps", name: "w1" };
    assert.deepEqual(of({ isOwnCluster: true }), { cluster: { ...cluster, own: true } });
    assert.deepEqual(of({ clusterUid: "c" }), { cluster: { ...cluster, uid: "c" } });
    assert.deepEqual(of({}), { cluster });
  });

  it("a reason to wait keeps its deadline when its message changes, and another reason gets its own", () => {
    const deadlineMs = NOW.epochMs + 7_000;
    const waiting = (reason: string) => {
      const other = { node: undefined, admission: undefined };
      const status = { node: undefined, conditions: [said(reason, "before")] };
      return attemptOf({ state: "Resolving", attempt: { deadlineMs }, status, other })?.deadline ?? "";
    };
    assert.equal(Date.parse(waiting("NodeNotFound")), deadlineMs);
    assert.ok(Date.parse(waiting("HostNotFound")) > deadlineMs);
  });

  it("a report that is longer than what a status keeps of it is stored once, and ends as a shorter one does", () => {
    const host = { found: false, reason: "Ambiguous", message: "h".repeat(3_000) } as const;
    const next = (changes: SnapshotChanges): string => {
      const first = decide(snapshot(changes), NOW);
      const stored = { ...changes, status: { ...changes.status, ...first.status } };
      return `${told(first, changes.state)}; ${told(decide(snapshot(stored), NOW), changes.state)}`;
    };
    const other = { host, admission: undefined };
    assert.equal(next({ state: "Resolving", other }), "stay (Ambiguous); wait");
    const late = { host, admission: undefined, remainingMs: 0 };
    assert.equal(next({ state: "Resolving", other: late }), "stay (Ambiguous); → Undoing (Ambiguous)");
    assert.equal(next({ state: "Undoing", observations: UNDOING, other: { host } }), "stay (TargetGone); wait");
    const ended = { ...UNDOING, marksCleared: true, devicesClosed: true };
    const deleted = {
      remediation: { deleting: true },
      outcome: { verdict: "Deleted", reason: "Deleted", message: "" },
    } as const;
    assert.equal(
      next({ state: "Undoing", ...deleted, observations: ended, other: { host, remainingMs: 0 } }),
      "stay (TargetGone); dropFinalizer",
    );
  });

  it("a report with a text that the API server stores in another way is stored once, also if its end cuts a character", () => {
    for (const message of ["a BMC that says \ud83d", `${"h".repeat(999)}\u{1f600}`]) {
      const changes = { state: "Undoing", observations: UNDOING } as const;
      const other = { host: { found: false, reason: "Ambiguous", message } } as const;
      // JSON for the API server has half of a surrogate pair as an escape, which it reads as U+FFFD.
      const { conditions } = decide(snapshot({ ...changes, other }), NOW).status ?? {};
      const stored = conditions?.map((condition) => ({ ...condition, message: condition.message.toWellFormed() }));
      const status = stored === undefined ? {} : { conditions: stored };
      assert.equal(told(decide(snapshot({ ...changes, status, other }), NOW), "Undoing"), "wait");
    }
  });

  it("a reboot that did not last is subtracted from the proven ones, and none is subtracted for a reprovision", () => {
    const turnedOn = (kind: "Reboot" | "Reprovision") =>
      decide(
        snapshot({
          state: "PoweringOff",
          attempt: { kind, orders: ORDERS_MAX, offConfirmedAtMs: NOW.epochMs - 60_000 },
          strategy: { retryLimit: 3 },
          observations: {
            taintCleared: true,
            power: READ_ON,
            order: ordered("Acknowledged", 30_000),
            identity: VERIFIED,
            examined: { node: node() },
          },
          status: { provenReboots: 2 },
        }),
        NOW,
      ).status?.provenReboots;
    assert.deepEqual([turnedOn("Reboot"), turnedOn("Reprovision")], [1, 2]);
  });

  it("nothing is stored about a node whose cluster cannot be reached: the data may be about another cluster", () => {
    const clusterProblem = { reason: "ClusterUnreachable", message: "away" } as const;
    const { status } = decide(
      snapshot({
        state: "Resolving",
        status: { node: { name: "n1" } },
        other: { clusterProblem, admission: undefined },
      }),
      NOW,
    );
    assert.deepEqual([status?.phase, status?.node], ["Resolving", { name: "n1" }]);
  });

  it("the claim of a host stores the zone and the Machine by which the remediation counts", () => {
    const machine = {
      apiVersion: "machine.openshift.io/v1beta1",
      kind: "Machine",
      namespace: "m",
      name: "m1",
      uid: "m",
    };
    const subject = { nodeName: "n1", cluster: undefined, machine };
    const { status } = decide(snapshot({ state: "Resolving", other: { zone: "z1", subject } }), NOW);
    assert.deepEqual([status?.phase, status?.node?.zone, status?.machine], ["Verifying", "z1", machine]);
  });

  it("a power-off stores the node as it is then, and keeps how it was found", () => {
    const cluster = { namespace: "caps", name: "w1" };
    const { status } = decide(
      snapshot({
        state: "Verifying",
        observations: { examined: { node: node({ bootID: "boot-2" }) }, identity: VERIFIED },
        status: { node: { name: "n1", wasReady: false, zone: "z1", cluster } },
      }),
      NOW,
    );
    const { uid, bootID, wasReady, zone, cluster: kept } = status?.node ?? {};
    assert.deepEqual([uid, bootID, wasReady, zone, kept], ["node-uid", "boot-2", false, "z1", cluster]);
  });

  it("a new remediation begins with a reprovision if the strategy is one", () => {
    const kindOf = (type: "Reboot" | "Reprovision") =>
      decide(
        { ...snapshot({ state: "Resolving", strategy: { type } }), state: { name: "Resolving", attempt: undefined } },
        NOW,
      ).status?.attempt?.kind;
    assert.deepEqual([kindOf("Reboot"), kindOf("Reprovision")], ["Reboot", "Reprovision"]);
  });

  it("the status shows that a deleted Node has joined again, and shows nothing if none was deleted", () => {
    const rejoined = (conditions: Condition[]) =>
      decide(
        snapshot({
          state: "Rejoining",
          observations: {
            devicesClosed: true,
            quarantineLifted: true,
            lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs },
          },
          status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot" }, conditions },
          other: { node: node({ uid: "new-uid", bootID: "new-boot" }) },
        }),
        NOW,
      ).status?.conditions?.find(({ type }) => type === "PermanentNodeDeletionExpected");
    assert.equal(rejoined([announced()])?.status, "False");
    assert.equal(rejoined([]), undefined);
  });

  it("a decision warns about what the operator must do, not about a wait for a host or an admission", () => {
    const claim = { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } as const;
    const waits: readonly SnapshotChanges[] = [
      { state: "Resolving", observations: { claim } },
      { state: "Resolving", other: { admission: { granted: false, reason: "WaitingForTurn", message: "third" } } },
      { state: "Resolving", other: { admission: undefined, hold: { reason: "Paused", message: "by a test" } } },
    ];
    const types = waits.map((changes) => decide(snapshot(changes), NOW).notes[0]?.type);
    assert.deepEqual(types, ["Normal", "Normal", "Warning"]);
  });

  for (const waiting of [true, false]) {
    it(`a success releases the host ${waiting ? "as it is to the remediation that waits for it" : "without any off request"}`, () => {
      const observations = { devicesClosed: true, successor: { waiting, atMs: NOW.monotonicMs } };
      const other = { node: node({ ready: "True", bootID: "new-boot" }) };
      const { effects } = decide(snapshot({ state: "Restoring", observations, other }), NOW);
      assert.deepEqual(effects, [{ do: "releaseHost", asItIs: waiting }]);
    });
  }
});
