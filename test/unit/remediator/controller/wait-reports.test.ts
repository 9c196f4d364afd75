import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isWaitReport, WaitReports } from "../../../../src/remediator/controller/wait-reports.ts";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import type { SnapshotChanges } from "../machine/snapshots.ts";
import { NOW, OWNER, snapshot } from "../machine/snapshots.ts";

/** Asks for all `keys`. @returns those that were granted. */
function beginAll(reports: WaitReports, keys: readonly string[]): string[] {
  return keys.filter((key) => reports.begin(key).granted);
}

describe("the reports of remediations that only wait", () => {
  it("the reports of waiting remediations are stored four at a time, and the others are woken in their order", () => {
    const woken: string[] = [];
    const reports = new WaitReports((key) => woken.push(key));
    assert.deepEqual(beginAll(reports, ["a", "b", "c", "d", "e", "f", "e"]), ["a", "b", "c", "d"]);
    reports.end();
    assert.deepEqual(woken, ["e"]);
    assert.deepEqual(beginAll(reports, ["e", "g"]), ["e"]);
    reports.end();
    reports.end();
    reports.end();
    assert.deepEqual(woken, ["e", "f", "g"]);
  });

  it("the next waiting remediation is woken if the one before it has ended, or has something else to do", () => {
    const woken: string[] = [];
    const reports = new WaitReports((key) => woken.push(key));
    beginAll(reports, ["a", "b", "c", "d", "e", "f", "g"]);
    reports.reconciled("e");
    assert.deepEqual(woken, []);
    reports.end();
    assert.deepEqual(woken, ["e"]);
    reports.reconciled("e");
    assert.deepEqual(woken, ["e", "f"]);
    assert.deepEqual(beginAll(reports, ["f"]), ["f"]);
    reports.reconciled("f");
    assert.deepEqual(woken, ["e", "f"]);
  });

  it("a waiting remediation that comes too late for its report wakes no other one", () => {
    const woken: string[] = [];
    const reports = new WaitReports((key) => woken.push(key));
    beginAll(reports, ["a", "b", "c", "d", "e", "f"]);
    reports.end();
    assert.deepEqual(beginAll(reports, ["new", "e"]), ["new"]);
    reports.reconciled("e");
    assert.deepEqual(woken, ["e"]);
    reports.end();
    assert.deepEqual(woken, ["e", "f"]);
  });

  it("the report of a waiting remediation is postponed, unless it may inherit a host", () => {
    const isReport = (changes: Omit<SnapshotChanges, "state">): boolean => {
      const made = snapshot({ state: "Resolving", ...changes });
      return isWaitReport(made.state, decide({ ...made, status: {} }, NOW));
    };
    const waiting = { granted: false, reason: "WaitingForTurn", message: "third" } as const;
    const claim = { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } as const;
    assert.equal(isReport({ other: { admission: waiting } }), true);
    assert.equal(isReport({ observations: { claim } }), false);
    assert.equal(isReport({ other: { admission: { granted: true } } }), false);
    assert.equal(isReport({ other: { admission: undefined } }), false);
  });
});
