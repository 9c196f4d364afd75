import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ViewFreshness } from "../../../../src/detector/shared/views/watched-nodes/view-freshness.ts";

/** A view that has shown events at the given times, each with its age by its own timestamp. */
function shown(...events: [atMs: number, lagMs?: number][]): ViewFreshness {
  const view = new ViewFreshness();
  for (const [atMs, lagMs] of events) view.observe(atMs, lagMs);
  return view;
}

describe("a view of the nodes is taken for how things are", () => {
  const cases: [string, [number, number?][], number, boolean][] = [
    ["not before a change was seen as it happened", [[0], [1_000]], 1_000, false],
    ["after one was", [[0, 900]], 0, true],
    ["for as long as news keep coming", [[0, 900], [1_900], [3_800]], 5_700, true],
    ["not after a silence", [[0, 900]], 2_001, false],
    ["not when news come again after a silence: they may be late", [[0, 900], [2_001]], 2_001, false],
    [
      "again once a change was seen as it happened after a silence",
      [
        [0, 900],
        [9_000, 100],
      ],
      9_000,
      true,
    ],
    [
      "not after a change that came late",
      [
        [0, 900],
        [1_000, 2_001],
      ],
      1_000,
      false,
    ],
    ["not by what comes behind one that came late", [[0, 2_001], [100], [200]], 200, false],
    ["not after a change from the future: its clock proves nothing", [[0, -2_001]], 0, false],
  ];
  for (const [what, events, atMs, expected] of cases) {
    it(what, () => assert.equal(shown(...events).isFresh(atMs), expected));
  }
});
