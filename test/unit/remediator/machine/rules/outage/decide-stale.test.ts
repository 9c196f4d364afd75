import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import type { Observations } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import type { Snapshot } from "../../../../../../src/remediator/machine/model/facts/snapshot.ts";
import type { SnapshotChanges } from "../../snapshots.ts";
import { node, NOW, said, snapshot, told } from "../../snapshots.ts";
import type { Decision } from "../../../../../../src/remediator/machine/model/decision/decision.ts";

// Old or restored remediations without status, which may be about a past outage.

const READY = { isReady: true, isFoundUnhealthy: false, atMs: NOW.monotonicMs - 2_000 };

const TARGET = { namespace: "ironfence", name: "n1", uid: "target-uid" };

function old(
  changes: Partial<Snapshot["remediation"]> = {},
  request: Observations["request"] = READY,
  other: Partial<SnapshotChanges> = {},
): SnapshotChanges {
  return {
    state: "Resolving",
    remediation: { hasFinalizer: false, ageMs: 600_000, ...changes },
    observations: { claim: undefined, request },
    status: { node: undefined, attempt: undefined },
    other: { node: node({ ready: "True" }) },
    ...other,
  };
}

function decisionOf(changes: SnapshotChanges): Decision {
  return decide({ ...snapshot(changes), state: { name: "Resolving", attempt: undefined } }, NOW);
}

const toldOf = (changes: SnapshotChanges): string => told(decisionOf(changes), changes.state);

describe("a remediation without status that is older than 10 minutes", () => {
  it("a remediation without status that is older than 10 minutes reads its node and its health check live before anything else", () => {
    assert.equal(toldOf(old({}, READY, { observations: {} })), "examineRequest");
    assert.equal(toldOf(old({}, { ...READY, atMs: NOW.monotonicMs - 31_000 })), "examineRequest");
  });

  it("a remediation without status that is older than 10 minutes waits to be confirmed if its node is Ready and no health check lists it, and says how", () => {
    const { status, effects } = decisionOf(old());
    assert.deepEqual([status?.phase, status?.attempt, status?.node, effects], ["Resolving", undefined, undefined, []]);
    const processing = status?.conditions?.find(({ type }) => type === "Processing");
    assert.equal(processing?.reason, "StaleRequest");
    assert.match(
      processing.message,
      /kubectl annotate -n ns baremetalremediations\.ironfence\.io n1 ironfence\.io\/confirm=uid/,
    );
    const waiting = {
      status: { node: undefined, attempt: undefined, conditions: [said("StaleRequest", processing.message)] },
    };
    assert.equal(toldOf(old({ ageMs: 0 }, READY, waiting)), "wait");
  });

  it("a remediation without status that is older than 10 minutes begins if its node is not Ready, if its health check lists it, and once it is confirmed", () => {
    const notReady = { ...READY, isReady: false };
    assert.equal(toldOf(old({}, notReady, { other: { node: node({ ready: "Unknown" }) } })), "addFinalizer");
    assert.equal(toldOf(old({}, { ...READY, isFoundUnhealthy: true })), "addFinalizer");
    assert.equal(toldOf(old({ isConfirmed: true })), "addFinalizer");
    const waiting = { status: { node: undefined, attempt: undefined, conditions: [said("StaleRequest", "")] } };
    assert.equal(toldOf(old({ isConfirmed: true }, READY, waiting)), "addFinalizer");
  });

  it("a remediation without status that is older than 10 minutes waits, too, if it had to wait for something that could not be read before", () => {
    const unread = { status: { node: undefined, attempt: undefined, conditions: [said("InputUnread", "")] } };
    assert.equal(toldOf(old({}, READY, unread)), "stay (StaleRequest)");
  });

  it("a remediation without status that is older than 10 minutes may begin only for a node that was not Ready, whatever the watch shows later", () => {
    const changes = old({ hasFinalizer: true }, { ...READY, isReady: false, atMs: NOW.monotonicMs - 500 });
    const made = snapshot({ ...changes, other: { ...changes.other, admission: { granted: true } } });
    const observations = { ...made.observations, claim: { owned: true, targetUid: "target-uid" } as const };
    const { status } = decide({ ...made, observations, state: { name: "Resolving", attempt: undefined } }, NOW);
    assert.deepEqual([status?.phase, status?.node?.wasReady], ["Verifying", false]);
  });

  it("a remediation without status that is older than 10 minutes is evaluated again at once when its node becomes Ready, or is no longer Ready", () => {
    assert.equal(toldOf(old({}, { ...READY, isReady: false })), "examineRequest");
    assert.equal(toldOf(old({}, { ...READY, isReady: false, atMs: NOW.monotonicMs - 500 })), "addFinalizer");
    assert.equal(toldOf(old({}, READY, { other: { node: node({ ready: "Unknown" }) } })), "examineRequest");
    assert.equal(toldOf(old({}, READY, { other: { node: node({ ready: "True" }) } })), "stay (StaleRequest)");
  });

  it("a remediation without status that is older than 10 minutes waits, too, if an attempt was stored by a wait before its node was read", () => {
    assert.equal(told(decide(snapshot(old()), NOW), "Resolving"), "stay (StaleRequest)");
  });

  it("a remediation without status that is older than 10 minutes is not held once it has begun, or if it serves a request of another kind", () => {
    const begun: SnapshotChanges[] = [
      old({}, READY, { status: { node: { name: "n1", wasReady: false } } }),
      old({}, READY, { status: { node: undefined, target: { kind: "FencingTarget", ...TARGET } } }),
      old({}, READY, { status: { node: undefined }, attempt: { action: "Inherited" } }),
    ];
    for (const changes of begun) assert.equal(told(decide(snapshot(changes), NOW), "Resolving"), "addFinalizer");
    assert.equal(toldOf(old({ isRequested: true })), "addFinalizer");
  });
});

describe("a younger remediation without status", () => {
  it("a younger remediation without status begins, unless a backup tool has restored it", () => {
    const ageMs = 599_999;
    assert.equal(toldOf(old({ ageMs })), "addFinalizer");
    assert.equal(toldOf(old({ ageMs, isRestored: true })), "stay (StaleRequest)");
  });
});
