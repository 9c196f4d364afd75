import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeStorm } from "../../../../src/detector/nodes/decide/storm.ts";
import type { Storm } from "../../../../src/detector/nodes/decide/storm.ts";

const T0 = 1_800_000_000_000;

describe("storm guard", () => {
  const cases: [string, Storm, number | undefined, boolean, number, Storm][] = [
    ["off: a breach is not a storm", { state: "calm" }, undefined, false, T0, { state: "calm" }],
    ["switched off in a storm: calm", { state: "storm" }, undefined, false, T0, { state: "calm" }],
    ["a breach starts it", { state: "calm" }, 60_000, false, T0, { state: "storm" }],
    ["it goes on below the threshold", { state: "storm" }, 60_000, false, T0, { state: "storm" }],
    ["regained: cooldown", { state: "storm" }, 60_000, true, T0, { state: "cooldown", sinceMs: T0 }],
    ["regained without a cooldown: calm", { state: "storm" }, 0, true, T0, { state: "calm" }],
    [
      "the cooldown runs",
      { state: "cooldown", sinceMs: T0 },
      60_000,
      true,
      T0 + 59_999,
      { state: "cooldown", sinceMs: T0 },
    ],
    ["the cooldown ends", { state: "cooldown", sinceMs: T0 }, 60_000, true, T0 + 60_000, { state: "calm" }],
    ["a new breach ends the cooldown", { state: "cooldown", sinceMs: T0 }, 60_000, false, T0 + 1, { state: "storm" }],
  ];
  for (const [name, before, cooldownMs, isMet, nowMs, after] of cases) {
    it(name, () => assert.deepEqual(judgeStorm(before, cooldownMs, isMet, nowMs), after));
  }
});
