import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { play } from "./explore/play.ts";
import type { Run } from "./explore/run.ts";
import { scenario } from "./explore/scenarios.ts";

/** Long enough for another agent to take the lease over. */
const STOPPED_MS = 30_000;

describe("a leader that is stopped between what it decides and its call to a BMC", () => {
  it("a leader that is stopped between a decision and its call to a BMC sends nothing when it continues after another agent took the lease", async () => {
    const base = scenario("reprovisionGivenUp");
    const run: Run = { ...base, shape: { ...base.shape, agents: [{}, {}] } };
    const { effects } = await play(run);
    // A power order has its own check of the time. A boot override has only the guard of all device calls.
    const decided = effects.flatMap((what, index) =>
      what === "PATCH baremetalremediations/status" && effects[index + 1]?.startsWith("setBootOverride") === true
        ? [index]
        : [],
    );
    assert.ok(decided.length > 1, effects.join(", "));
    for (const index of decided) {
      const stopped: Run = {
        ...run,
        faults: [{ at: "effect", index, how: "stop", forMs: STOPPED_MS, answersFirst: true }],
      };
      const { violations, verdicts } = await play(stopped);
      assert.deepEqual(violations, []);
      assert.deepEqual(verdicts, ["Failed TimedOut"]);
    }
  });
});

describe("a leader whose machine is suspended, so that its monotonic clock stops", () => {
  it("a leader whose machine was suspended, with its monotonic clock, sends and writes nothing when it continues after another agent took the lease", async () => {
    const base = scenario("reboot");
    const run: Run = { ...base, shape: { ...base.shape, agents: [{}, {}] } };
    const { effects } = await play(run);
    const decided = effects.flatMap((what, index) => (/^(PATCH (bare|fencing|nodes)|On)/.test(what) ? [index] : []));
    assert.ok(decided.length > 10, effects.join(", "));
    // Only every second one. The explorer's mode `leaders` plays all of them.
    for (const index of decided.filter((_index, at) => at % 2 === 1)) {
      const asleep: Run = {
        ...run,
        faults: [{ at: "effect", index, how: "stop", forMs: 120_000, answersFirst: true, machine: true }],
      };
      const { violations, verdicts } = await play(asleep);
      assert.deepEqual(violations, [], `after effect ${index}, ${effects[index]}`);
      assert.deepEqual(verdicts, ["Succeeded"]);
    }
  });
});
