import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mayBePostponed, WaitReports } from "../../../../src/remediator/controller/wait-reports.ts";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import { reportApiFailure } from "../../../../src/remediator/machine/rules/waits/api-failure.ts";
import { API_REPORT_AFTER_MS } from "../../../../src/remediator/machine/model/decision/timings.ts";
import type { NodeAtCreation } from "../../../../src/nodes/creation-record.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import type { SnapshotChanges } from "../machine/snapshots.ts";
import { node, NOW, OWNER, snapshot } from "../machine/snapshots.ts";

const WAITING = { granted: false, reason: "WaitingForTurn", message: "third" } as const;

function reserveAll(reports: WaitReports, count: number): number[] {
  return Array.from({ length: count }, () => reports.reserve());
}

const repeated = (...batches: readonly [number, number][]): number[] =>
  batches.flatMap(([atMs, count]) => Array.from({ length: count }, () => atMs));

describe("the times of postponed reports", () => {
  it("the times of postponed reports are 20 at once, and 20 more every 200 ms", () => {
    const reports = new WaitReports(new VirtualClock());
    assert.deepEqual(reserveAll(reports, 65), repeated([0, 20], [200, 20], [400, 20], [600, 5]));
  });

  it("the times of postponed reports follow those that are reserved, also after a while", async () => {
    const clock = new VirtualClock();
    const reports = new WaitReports(clock);
    reserveAll(reports, 50);
    await clock.advance(300);
    assert.deepEqual(reserveAll(reports, 15), repeated([400, 10], [600, 5]));
  });

  it("the times of postponed reports are now again after a quiet time", async () => {
    const clock = new VirtualClock();
    const reports = new WaitReports(clock);
    reserveAll(reports, 21);
    await clock.advance(399);
    assert.equal(reports.reserve(), 200, "the batch of that time is not full");
    await clock.advance(1);
    assert.deepEqual(reserveAll(reports, 21), repeated([400, 20], [600, 1]));
  });
});

const AT_CREATION = { uid: "node-uid", bootID: "old-boot" };

/** Whether the report of a remediation that has not stored anything may be postponed. */
function isPostponed(
  readyInBoot: string | undefined,
  changes: Partial<SnapshotChanges> = {},
  decideOn: typeof decide = decide,
): boolean {
  const made = snapshot({
    state: "Resolving",
    status: { node: undefined },
    ...changes,
    remediation: { readyInBoot, nodeAtCreation: AT_CREATION, ...changes.remediation },
    other: { admission: WAITING, ...changes.other },
  });
  const { status } = decideOn(made, NOW);
  return status !== undefined && mayBePostponed(made, status);
}

describe("a report that a remediation waits", () => {
  for (const reason of ["WaitingForTurn", "ControlPlaneQuorum"] as const) {
    it(`a report that a remediation waits because of ${reason} ${reason === "WaitingForTurn" ? "may" : "must not"} be postponed`, () => {
      assert.equal(isPostponed("", { other: { admission: { ...WAITING, reason } } }), reason === "WaitingForTurn");
    });
  }

  it("a report that a remediation waits for the end of a hold may be postponed", () => {
    for (const reason of ["Paused", "PauseUnknown", "Maintenance"] as const) {
      const other = { admission: undefined, hold: { reason, message: "by a test" } };
      assert.equal(isPostponed("", { other }), true, reason);
    }
  });

  it("a report that a remediation waits is stored at once if its creator did not record the same readiness", () => {
    assert.equal(isPostponed(undefined), false);
    assert.equal(isPostponed("old-boot"), false, "an agent that restarts would take it for Ready in that boot");
    const ready = { node: node({ ready: "True" }) };
    assert.equal(isPostponed("old-boot", { other: ready }), true);
    assert.equal(isPostponed("another-boot", { other: ready }), false);
  });

  it("a report that a remediation waits is stored at once if its creator recorded another Node, or none", () => {
    const isPostponedAfter = (nodeAtCreation: NodeAtCreation | undefined, zone?: string) =>
      isPostponed("", { remediation: { nodeAtCreation }, other: { zone } });
    assert.equal(isPostponedAfter(undefined), false, "an earlier version created it");
    assert.equal(isPostponedAfter({ ...AT_CREATION, uid: "another-uid" }), false);
    assert.equal(isPostponedAfter({ ...AT_CREATION, bootID: "another-boot" }), false);
    assert.equal(isPostponedAfter(AT_CREATION, "z1"), false, "its creator uses another label");
    assert.equal(isPostponedAfter({ ...AT_CREATION, zone: "z1" }), false);
    assert.equal(isPostponedAfter({ ...AT_CREATION, zone: "z1" }, "z1"), true);
  });

  it("a report that a remediation waits is stored at once if a user confirmed a fence that its creator did not expect", () => {
    const other = { node: node({ ready: "True" }) };
    assert.equal(isPostponed("", { other }), true, "it counts as not Ready");
    assert.equal(isPostponed("", { other, remediation: { isConfirmed: true } }), false);
  });

  it("a report that a remediation waits is stored at once if its Node is gone", () => {
    const status = { node: { name: "n1", uid: "node-uid", bootIDAtStart: "old-boot", wasReady: false } };
    assert.equal(isPostponed("", { status }), true);
    assert.equal(isPostponed("", { status, other: { node: undefined } }), false);
  });

  it("a report that a remediation waits is stored at once if it may inherit a host", () => {
    const claim = { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } as const;
    assert.equal(isPostponed("", { observations: { claim }, other: { admission: undefined } }), false);
    const hold = { reason: "Maintenance", message: "by a test" } as const;
    assert.equal(isPostponed("", { attempt: { action: "Inherited" }, other: { hold, admission: undefined } }), false);
  });

  it("a report that a remediation waits is stored at once if it gives its slot up", () => {
    const hold = { reason: "Paused", message: "by a test" } as const;
    const node = { name: "n1", uid: "node-uid", bootIDAtStart: "old-boot", wasReady: false };
    const changes = { state: "Verifying", status: { node }, observations: { marksCleared: true } } as const;
    assert.equal(decide(snapshot({ ...changes, other: { hold } }), NOW).status?.phase, "Resolving");
    assert.equal(isPostponed("", { ...changes, other: { hold } }), false);
  });

  it("a report that calls fail, or succeed again, is stored at once, because the remediation goes on after it", () => {
    const sinceMs = NOW.monotonicMs - API_REPORT_AFTER_MS;
    const kube = {
      call: "claimHost",
      message: "refused",
      failures: 9,
      refused: false,
      sinceMs,
      retryAtMs: NOW.monotonicMs,
    } as const;
    const failing = (...given: Parameters<typeof decide>) => reportApiFailure(...given) ?? assert.fail();
    const status = { node: { name: "n1", uid: "node-uid", bootIDAtStart: "old-boot", wasReady: false } };
    assert.equal(isPostponed("", { status, observations: { kube } }, failing), false);
    const conditions = [
      { type: "Processing", status: "True", reason: "ApiFailing", message: "refused", lastTransitionTime: "" },
    ] as const;
    const recovered = { status: { ...status, conditions: [...conditions] } };
    assert.equal(isPostponed("", recovered), false);
  });

  it("a report that a remediation begins is stored at once", () => {
    assert.equal(isPostponed("", { other: { admission: { granted: true } } }), false);
  });
});
