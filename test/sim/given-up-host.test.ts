import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { play } from "./explore/play.ts";
import type { Act, Fault } from "./explore/run.ts";
import { scenario } from "./explore/scenarios.ts";

describe("a host that is given up as its node fails again", () => {
  it("a host that is given up as its node fails again is powered only by the remediation that takes it then", async () => {
    const strategy = { type: "Reboot", retryLimit: 1, drainTimeout: "0s", timeout: "10s" };
    // Eight remediations wait for one host. Each finds that its node is back and gives the host up. During one such
    // write, over a slow connection, the node fails again. That remediation begins another attempt, but another one
    // already owns the host.
    const ordered = "abcdefgh".split("").map((letter, index): Act => {
      const when = { atMs: 32_000 + index * 300 };
      return { when, do: "remediate", node: "n1", name: `n1-${letter}`, strategy };
    });
    const script: Act[] = [
      { when: { atMs: 0 }, do: "hang", host: "n1" },
      ...ordered,
      { when: { atMs: 52_000 }, do: "hang", host: "n1" },
    ];
    const { violations, fences } = await play({
      name: "walk",
      seed: 5,
      shape: { latencyMs: 1_000 },
      script,
      faults: [],
    });
    assert.deepEqual(violations, []);
    assert.equal(fences, 2);
  });
});

describe("a host whose remediation is undone after the power-off", () => {
  // The BMC reports an old state for a long time.
  const staleFrom = (index: number): Fault => ({ at: "call", index, times: 1_000, lie: "staleOn" });
  const undone = { givenUp: 0, reprovisionGivenUp: 30, wrongHost: 31, targetRemade: 29 };

  it("a host whose remediation is undone after the power-off is powered on again though its BMC says On all the time", async () => {
    for (const [name, index] of Object.entries(undone)) {
      const { violations } = await play({ ...scenario(name, 802_000_000), faults: [staleFrom(index)] });
      assert.deepEqual(violations, [], name);
    }
  });
});
