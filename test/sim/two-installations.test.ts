import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { play } from "./explore/play.ts";
import type { Fault, Run } from "./explore/run.ts";
import { scenario } from "./explore/scenarios.ts";

/** Long enough for the other installation to take over. */
const GONE_MS = 40_000;

function twoInstallations(name: string): Run {
  const base = scenario(name);
  return { ...base, shape: { ...base.shape, agents: [{}, { installation: "other" }] } };
}

/** Plays the run once for each effect that changes a host or a node, with a fault after it. */
async function playEach(run: Run, faultAt: (index: number) => Fault): Promise<void> {
  const { effects, verdicts: expected } = await play(run);
  const places = effects.flatMap((what, index) => (/^(PATCH nodes|ForceOff|On) ?/.test(what) ? [index] : []));
  assert.ok(places.length > 4, effects.join(", "));
  for (const index of places) {
    const { violations, verdicts } = await play({ ...run, faults: [faultAt(index)] });
    assert.deepEqual(violations, [], `after effect ${index}, ${effects[index]}`);
    assert.deepEqual(verdicts, expected);
  }
}

describe("two installations in one cluster", () => {
  it("two installations in one cluster never power a host on under the other's taint", async () => {
    for (const name of ["retry", "massOutage"]) {
      const { violations, verdicts } = await play(twoInstallations(name));
      assert.deepEqual(violations, [], name);
      assert.deepEqual(verdicts, (await play(scenario(name))).verdicts);
    }
  });

  it("two installations in one cluster take over from each other at any moment of a fence after a crash", async () => {
    await playEach(twoInstallations("drainTimeout"), (index) => ({
      at: "effect",
      index,
      how: "crash",
      place: "between",
    }));
  });

  it("two installations in one cluster do not act side by side if the first was stopped and goes on under the other's lease", async () => {
    await playEach(twoInstallations("drainTimeout"), (index) => ({
      at: "effect",
      index,
      how: "stop",
      forMs: GONE_MS,
      answersFirst: true,
    }));
  });

  it("two installations in one cluster do not act side by side if the leases are deleted while the first cannot reach them", async () => {
    await playEach(twoInstallations("drainTimeout"), (index) => ({
      at: "effect",
      index,
      how: "deleteLease",
      forMs: GONE_MS,
    }));
  });
});
