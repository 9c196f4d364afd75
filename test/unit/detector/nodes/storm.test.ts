import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeStorm } from "../../../../src/detector/nodes/decide/storm.ts";
import type { Storm } from "../../../../src/detector/nodes/decide/storm.ts";

const T0 = 1_800_000_000_000;

describe("storm guard", () => {
  const cases: [string, Storm, number | undefined, boolean, number, Storm][] = [
    [
      "a storm does not start without a cooldown in the spec",
      { state: "calm" },
      undefined,
      false,
      T0,
      { state: "calm" },
    ],
    [
      "a storm ends when its cooldown is removed from the spec",
      { state: "storm" },
      undefined,
      false,
      T0,
      { state: "calm" },
    ],
    ["a storm starts when the threshold is breached", { state: "calm" }, 60_000, false, T0, { state: "storm" }],
    ["a storm continues below the threshold", { state: "storm" }, 60_000, false, T0, { state: "storm" }],
    [
      "a storm begins its cooldown when the threshold is met again",
      { state: "storm" },
      60_000,
      true,
      T0,
      { state: "cooldown", sinceMs: T0 },
    ],
    [
      "a storm with a cooldown of zero ends when the threshold is met again",
      { state: "storm" },
      0,
      true,
      T0,
      { state: "calm" },
    ],
    [
      "a storm stays in its cooldown until that is over",
      { state: "cooldown", sinceMs: T0 },
      60_000,
      true,
      T0 + 59_999,
      { state: "cooldown", sinceMs: T0 },
    ],
    [
      "a storm ends when its cooldown is over",
      { state: "cooldown", sinceMs: T0 },
      60_000,
      true,
      T0 + 60_000,
      { state: "calm" },
    ],
    [
      "a storm starts again if the threshold is breached during the cooldown",
      { state: "cooldown", sinceMs: T0 },
      60_000,
      false,
      T0 + 1,
      { state: "storm" },
    ],
  ];
  for (const [name, before, cooldownMs, isMet, nowMs, after] of cases) {
    it(name, () => assert.deepEqual(judgeStorm(before, cooldownMs, isMet, nowMs), after));
  }
});
