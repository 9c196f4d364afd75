import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeHealth } from "../../../../src/detector/nodes/decide/health.ts";
import { toTime } from "../../../../src/runtime/time.ts";

const T0 = 1_800_000_000_000;
const RULES = [
  { type: "Ready", status: "False", durationMs: 300_000 },
  { type: "Ready", status: "Unknown", durationMs: 60_000 },
  { type: "Disk", status: "True", durationMs: 10_000 },
];
const condition = (type: string, status: string, sinceMs: number) => ({
  type,
  status,
  lastTransitionTime: toTime(sinceMs),
});

describe("node health", () => {
  const cases = [
    { name: "a node is healthy with no conditions", conditions: undefined, state: "healthy" },
    {
      name: "a node is healthy with no condition that matches",
      conditions: [condition("Ready", "True", T0)],
      state: "healthy",
    },
    {
      name: "a node is healthy with a rule for a condition that it does not have",
      conditions: [condition("Other", "True", 0)],
      state: "healthy",
    },
    {
      name: "a node is soonUnhealthy with one condition that matches for less than its duration",
      conditions: [condition("Ready", "Unknown", T0 - 59_000)],
      state: "soonUnhealthy",
    },
    {
      name: "a node is unhealthy with one condition that matches for exactly its duration",
      conditions: [condition("Ready", "Unknown", T0 - 60_000)],
      state: "unhealthy",
    },
    {
      name: "a node is unhealthy with two conditions that match, one for longer than its duration",
      conditions: [condition("Ready", "False", T0 - 60_000), condition("Disk", "True", T0 - 11_000)],
      state: "unhealthy",
    },
    {
      name: "a node is healthy with a condition that matches and has no time of its transition",
      conditions: [{ type: "Ready", status: "Unknown" }],
      state: "healthy",
    },
    {
      name: "a node is soonUnhealthy with a condition that matches, dated by a clock that is far ahead",
      conditions: [condition("Ready", "Unknown", T0 + 600_000)],
      state: "soonUnhealthy",
    },
  ];
  for (const { name, conditions, state } of cases) {
    it(name, () => {
      assert.equal(judgeHealth(RULES, conditions, T0).state, state);
    });
  }

  it("node health waits for the first duration that is over when two run", () => {
    const conditions = [condition("Ready", "Unknown", T0 - 1_000), condition("Disk", "True", T0 - 1_000)];
    const health = judgeHealth(RULES, conditions, T0);
    assert.equal(health.state === "soonUnhealthy" && health.untilMs, T0 + 9_000);
  });

  it("node health does not add a second to whole-second transition times, as upstream does", () => {
    const health = judgeHealth(RULES, [condition("Ready", "Unknown", T0 + 999)], T0 + 60_000);
    assert.equal(health.state, "unhealthy");
  });
});
