import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Observations } from "../../../../src/remediator/machine/model/facts/observations.ts";
import { nothingObserved } from "../../../../src/remediator/machine/model/facts/nothing-observed.ts";
import { NOW, OWNER, PROVEN, node, observationsAfter, stateOf } from "./snapshots.ts";

describe("what a process has seen", () => {
  const observations: Observations = {
    ...nothingObserved(),
    claim: { owned: true, targetUid: "target-uid" },
    examined: { node: node() },
    power: PROVEN,
    drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 3, isReported: true },
    released: true,
    taintCleared: true,
    marksCleared: true,
  };

  it("observations of pods and volumes count for the release that they belong to, and for no later one", () => {
    const { drain, released } = observationsAfter(observations, stateOf("PoweringOff"), stateOf("Releasing"));
    assert.deepEqual([drain, released], [undefined, false]);
    const again = observationsAfter(observations, stateOf("Releasing"), stateOf("Releasing"));
    assert.deepEqual(again.drain, observations.drain);
  });

  it("an undo reads the marks again, and the owner of the host", () => {
    const undone = observationsAfter(observations, stateOf("Releasing"), stateOf("Undoing"));
    assert.deepEqual([undone.taintCleared, undone.marksCleared, undone.claim], [false, false, observations.claim]);
    const others: Observations = { ...observations, claim: { owned: false, by: OWNER, undoing: false, atMs: 0 } };
    assert.equal(observationsAfter(others, stateOf("Releasing"), stateOf("Undoing")).claim, undefined);
  });

  it("observations of host and node are forgotten by the next attempt; the owner of the host is not", () => {
    const next = observationsAfter(observations, stateOf("Rejoining"), stateOf("Verifying", { id: "a2" }));
    assert.deepEqual([next.examined, next.power.provenAtMs, next.claim], [undefined, undefined, observations.claim]);
    const verifying = stateOf("Verifying");
    assert.equal(
      observationsAfter(observations, verifying, verifying),
      observations,
      "a wait is stored in the same attempt",
    );
    assert.equal(observationsAfter(observations, verifying, stateOf("Verifying", { id: "a2" })).examined, undefined);
  });
});
