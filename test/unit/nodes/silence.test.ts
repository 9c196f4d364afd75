import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { earlySilenceMs, longEarlySilenceMs, overdueAfterMs } from "../../../src/nodes/leases/silence.ts";

describe("how long a lease may stay unchanged", () => {
  for (const [seconds, overdueMs, silentMs, longMs] of [
    [40, 12_400, 16_000, 23_000],
    [80, 22_800, 26_400, 43_800],
    // It may keep the duration that it was created with.
    [20, 12_400, 16_000, 23_000],
  ] as const) {
    it(`a lease of ${seconds} s is overdue after ${overdueMs} ms, and silent after ${silentMs} ms, or ${longMs} ms if one device alone says Off`, () => {
      const durationMs = seconds * 1_000;
      assert.deepEqual(
        [overdueAfterMs(durationMs), earlySilenceMs(durationMs), longEarlySilenceMs(durationMs)].map(Math.round),
        [overdueMs, silentMs, longMs],
      );
    });
  }
});
