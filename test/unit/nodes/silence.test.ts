import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { earlySilenceMs, longEarlySilenceMs, overdueAfterMs, withGap } from "../../../src/nodes/leases/silence.ts";

const paced = (durationMs: number, gapsMs: number[]): number[] =>
  [overdueAfterMs, earlySilenceMs, longEarlySilenceMs].map((after) => Math.round(after({ durationMs, gapsMs })));

describe("how long a lease may stay unchanged", () => {
  for (const [seconds, overdueMs, silentMs, longMs] of [
    [40, 12_400, 16_000, 23_000],
    [80, 22_800, 26_400, 43_800],
    // A lease may keep the duration with which it was created.
    [20, 12_400, 16_000, 23_000],
  ] as const) {
    it(`a lease of ${seconds} s is overdue after ${overdueMs} ms, and silent after ${silentMs} ms, or after ${longMs} ms if only one device reports Off`, () => {
      const durationMs = seconds * 1_000;
      assert.deepEqual(paced(durationMs, [durationMs / 4, durationMs / 4]), [overdueMs, silentMs, longMs]);
    });
  }

  it("a kubelet that renews every 30 s under a lease that it took over with 40 s is silent only after longer than that", () => {
    assert.deepEqual(paced(40_000, [30_000, 31_000]), [34_240, 37_840, 66_680]);
  });

  it("a renewal that comes 2 s late does not lengthen the silence that counts", () => {
    assert.deepEqual(paced(40_000, [10_000, 12_400]), [12_400, 16_000, 23_000]);
  });

  it("a lease proves nothing early by its silence before two renewals were seen", () => {
    for (const gapsMs of [[], [10_000]]) assert.deepEqual(paced(40_000, gapsMs), [12_400, Infinity, Infinity]);
  });

  it("the last four gaps between renewals are remembered", () => {
    let gapsMs: readonly number[] = [];
    for (const gapMs of [60_000, 30_000, 10_000, 10_000, 10_000]) gapsMs = withGap(gapsMs, gapMs);
    assert.deepEqual(gapsMs, [30_000, 10_000, 10_000, 10_000]);
  });
});
