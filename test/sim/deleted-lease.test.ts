import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { play } from "./explore/play.ts";
import type { Run } from "./explore/run.ts";
import { scenario } from "./explore/scenarios.ts";

/** Long enough for the leader to give up and for another agent to lead. */
const CUT_OFF_MS = 30_000;

describe("a leader that does not reach its Lease, which a user deletes meanwhile", () => {
  it("a leader whose Lease a user deletes while it cannot reach it has stopped before another agent leads", async () => {
    const base = scenario("drainTimeout");
    const run: Run = { ...base, shape: { ...base.shape, agents: [{}, {}] } };
    const { effects } = await play(run);
    assert.ok(effects.length > 15, effects.join(", "));
    // After these effects, fences continue for some seconds, in which two holders would both act.
    const places = effects.flatMap((what, index) => (/^(PATCH nodes|ForceOff|On) ?/.test(what) ? [index] : []));
    assert.ok(places.length > 4, effects.join(", "));
    for (const index of places) {
      const cutOff: Run = { ...run, faults: [{ at: "effect", index, how: "deleteLease", forMs: CUT_OFF_MS }] };
      const { violations, verdicts } = await play(cutOff);
      assert.deepEqual(violations, [], `after effect ${index}, ${effects[index]}`);
      assert.deepEqual(verdicts, ["Succeeded"]);
    }
  });
});
