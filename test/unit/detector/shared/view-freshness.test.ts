import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ViewFreshness } from "../../../../src/detector/shared/views/watched-nodes/view-freshness.ts";

/** A view that has shown events at the given times, each with its age by its own timestamp. */
function shown(...events: [atMs: number, lagMs?: number][]): ViewFreshness {
  const view = new ViewFreshness();
  for (const [atMs, lagMs] of events) view.observe(atMs, lagMs);
  return view;
}

describe("the freshness of a view of the nodes", () => {
  const cases: [string, [number, number?][], number, boolean][] = [
    ["before a change was seen as it happened", [[0], [1_000]], 1_000, false],
    ["after a change was seen as it happened", [[0, 900]], 0, true],
    ["as long as changes keep arriving", [[0, 900], [1_900], [3_800]], 5_700, true],
    ["after a silence", [[0, 900]], 2_001, false],
    ["when changes arrive again after a silence, since they may be late", [[0, 900], [2_001]], 2_001, false],
    [
      "once a change was seen as it happened after a silence",
      [
        [0, 900],
        [9_000, 100],
      ],
      9_000,
      true,
    ],
    [
      "after a change that arrived late",
      [
        [0, 900],
        [1_000, 2_001],
      ],
      1_000,
      false,
    ],
    ["after changes that follow a late one", [[0, 2_001], [100], [200]], 200, false],
    ["after a change from the future, whose clock proves nothing", [[0, -2_001]], 0, false],
  ];
  for (const [what, events, atMs, expected] of cases) {
    it(`a view of the nodes is ${expected ? "" : "not "}fresh ${what}`, () =>
      assert.equal(shown(...events).isFresh(atMs), expected));
  }
});
