import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../src/remediator/machine/decide.ts";
import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import { observe } from "../../../../../src/remediator/machine/observe.ts";
import { NOW, PROVEN, snapshot, stateOf } from "../snapshots.ts";
import { OURS } from "../steps/fixtures.ts";

const FULL = { taint: OURS, power: PROVEN };

function checked(before: Partial<Observations>, pods: number, attachments: number): Observations {
  const { observations } = snapshot({ state: "Releasing", observations: { ...FULL, ...before } });
  return observe(observations, { type: "DrainChecked", pods, attachments, atMs: NOW.monotonicMs });
}

/** The stored progress, and the next effect. */
function next(observations: Partial<Observations>, status: object = {}) {
  return decide(snapshot({ state: "Releasing", observations, status }), NOW);
}

describe("the progress of a release", () => {
  it("the progress of a release counts what had to leave when the release began, and what is left", () => {
    const released = observe(checked({}, 5, 0), { type: "PodsReleased", pods: 5 });
    assert.deepEqual(next(checked(released, 2, 0)).status?.drain, {
      attemptID: "a1",
      pods: 5,
      attachments: 0,
      left: 2,
    });
    assert.deepEqual(next(checked(released, 0, 3)).status?.drain, {
      attemptID: "a1",
      pods: 5,
      attachments: 3,
      left: 3,
    });
  });

  it("the progress of a release runs no effect, and changes nothing else", () => {
    const observations = checked({}, 2, 0);
    const { status, effects, notes } = next(observations);
    const { drain: _drain, ...rest } = status ?? {};
    assert.deepEqual([effects, notes], [[], []]);
    assert.deepEqual(rest, snapshot({ state: "Releasing", observations }).status);
  });

  it("the progress of a release is stored once for each count, even if the API server does not keep it", () => {
    const state = stateOf("Releasing");
    const stored = observe(checked({}, 2, 0), { type: "StatusStored", from: state, to: state, isNodeNamed: true });
    assert.equal(next(stored).status, undefined);
    assert.equal(next(checked(stored, 2, 0)).status, undefined);
    assert.equal(next(checked(stored, 1, 0)).status?.drain?.left, 1);
  });

  it("the progress of a release is not stored again by a process that begins with what another one has stored", () => {
    const drain = { attemptID: "a1", pods: 5, attachments: 0, left: 2 };
    assert.equal(next(checked({}, 2, 0), { drain }).status, undefined);
    assert.equal(next(checked({}, 1, 0), { drain }).status?.drain?.pods, 5);
  });

  it("the progress of a release begins again with each power cycle", () => {
    const drain = { attemptID: "a0", pods: 9, attachments: 9, left: 9 };
    assert.equal(next(checked({}, 2, 0), { drain }).status?.drain?.pods, 2);
  });
});
