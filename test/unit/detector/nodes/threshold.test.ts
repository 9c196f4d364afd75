import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  chooseCounts,
  DEFAULT_THRESHOLD,
  judgeThreshold,
  countNodes,
} from "../../../../src/detector/nodes/decide/threshold.ts";
import { parseAmount } from "../../../../src/api/schema/amount.ts";
import type { Threshold } from "../../../../src/detector/nodes/decide/threshold.ts";

function threshold(kind: Threshold["kind"], text: number | string): Threshold {
  const amount = parseAmount(text);
  assert.ok(amount);
  return { kind, amount };
}

describe("threshold", () => {
  const cases: [Threshold["kind"], number | string, number, number][] = [
    ["minHealthy", "75%", 10, 8],
    ["maxUnhealthy", "75%", 10, 2],
    ["minHealthy", "51%", 3, 2],
    ["minHealthy", "0%", 10, 0],
    ["minHealthy", "100%", 10, 10],
    ["minHealthy", 0, 10, 0],
    ["minHealthy", 12, 10, 12],
    ["maxUnhealthy", "0%", 10, 10],
    ["maxUnhealthy", "100%", 10, 0],
    ["maxUnhealthy", 3, 10, 7],
    ["maxUnhealthy", 30, 10, 0],
    ["maxUnhealthy", "40%", 7, 4],
    ["minHealthy", "7%", 100, 7],
    ["minHealthy", "51%", 0, 0],
  ];
  for (const [kind, text, selected, required] of cases) {
    it(`a threshold ${kind} of ${text} needs ${required} of ${selected} nodes to be healthy`, () => {
      const judged = judgeThreshold(threshold(kind, text), { selected, healthy: required, absent: 0 });
      assert.deepEqual(judged, { required, isMet: true });
      if (required > 0) {
        assert.equal(
          judgeThreshold(threshold(kind, text), { selected, healthy: required - 1, absent: 0 }).isMet,
          false,
        );
      }
    });
  }

  it("threshold rounds both shares up, as upstream: of 10 nodes 75 % healthy are 8, and with 75 % unhealthy 2 are left", () => {
    for (const [kind, required] of [
      ["minHealthy", 8],
      ["maxUnhealthy", 2],
    ] as const) {
      assert.equal(judgeThreshold(threshold(kind, "75%"), { selected: 10, healthy: 0, absent: 0 }).required, required);
    }
  });

  it("the threshold is 51 % healthy by default", () => {
    assert.equal(judgeThreshold(DEFAULT_THRESHOLD, { selected: 100, healthy: 51, absent: 0 }).isMet, true);
    assert.equal(judgeThreshold(DEFAULT_THRESHOLD, { selected: 100, healthy: 50, absent: 0 }).isMet, false);
  });

  it("the threshold counts nodes that their remediation has deleted, so that a deletion allows no second one", () => {
    const max = threshold("maxUnhealthy", 2);
    assert.equal(judgeThreshold(max, { selected: 3, healthy: 1, absent: 0 }).isMet, true);
    assert.equal(judgeThreshold(max, { selected: 3, healthy: 2, absent: 2 }).isMet, false);
  });

  for (const text of ["-1", -1, "101%", "1000%", "1.5", 1.5, "", "%", "5 %", "many"]) {
    it(`a threshold of ${JSON.stringify(text)} is refused`, () => assert.equal(parseAmount(text), undefined));
  }
});

describe("two counts of the same nodes", () => {
  const minHealthy = threshold("minHealthy", 2);
  const seen = { selected: 3, healthy: 2, absent: 0 };

  it("two counts of the same nodes make the one count that lets nothing start", () => {
    const live = { selected: 3, healthy: 1, absent: 0 };
    assert.equal(chooseCounts(minHealthy, seen, live), live);
    assert.equal(chooseCounts(minHealthy, live, seen), live);
  });

  it("two counts of the same nodes leave it to the view if both let remediations start, or nothing was listed", () => {
    assert.equal(chooseCounts(minHealthy, seen, { selected: 3, healthy: 3, absent: 0 }), seen);
    assert.equal(chooseCounts(minHealthy, seen, undefined), seen);
  });
});

describe("the count of nodes", () => {
  type Counted = Parameters<typeof countNodes>[1][number];
  const counted = (state: "healthy" | "unhealthy", selected: boolean, remediations: number): Counted =>
    ({ health: { state }, selected, remediations: Array.from({ length: remediations }) }) as unknown as Counted;

  it("the count of nodes counts a healthy node as healthy, unless it has a remediation", () => {
    const healthy = [counted("healthy", true, 0), counted("healthy", true, 0), counted("healthy", true, 1)];
    assert.deepEqual(countNodes(3, healthy), { selected: 3, healthy: 2, absent: 0 });
  });

  it("the count of nodes includes a node that is not selected only if it has a remediation, and counts it as absent", () => {
    const others = [counted("unhealthy", false, 1), counted("healthy", false, 1), counted("unhealthy", false, 0)];
    assert.deepEqual(countNodes(3, others), { selected: 3, healthy: 3, absent: 2 });
  });

  it("the count of nodes counts a selected node that is unhealthy as neither healthy nor absent", () => {
    assert.deepEqual(countNodes(3, [counted("unhealthy", true, 0)]), { selected: 3, healthy: 2, absent: 0 });
  });
});
