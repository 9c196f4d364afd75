import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { MonotonicTimes } from "../../../../src/detector/shared/views/watched-nodes/condition-times.ts";
import { describeClockOffset } from "../../../../src/detector/shared/model/clock-skew.ts";
import { NodeTracker } from "../../../../src/detector/nodes/snapshot/node-tracker.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { nodeOf, policyOf, T0 } from "../nodes/builders.ts";

/** A clock whose wall time can be set. */
class SettableClock extends VirtualClock {
  setByMs = 0;
  override nowMs(): number {
    return super.nowMs() + this.setByMs;
  }
}

const policy = policyOf();
const all = (): boolean => true;
const well = nodeOf("a", "True", T0 - 3_600_000);
const failedAt = (ms: number): Node => nodeOf("a", "Unknown", ms);

/** An agent that has watched since T0, and sees the node fail then. */
function watching(changedMs: number, offset?: { minMs: number; maxMs: number }) {
  const clock = new SettableClock(T0);
  const times = new MonotonicTimes(clock, offset);
  const tracker = new NodeTracker(policy, [well], clock.nowMs(), times);
  const change = { type: "updated", previous: well, object: failedAt(changedMs) } as const;
  times.observe(change);
  tracker.observe(change, clock.nowMs());
  const stateAfter = async (ms: number) => {
    await clock.advance(ms);
    tracker.advance(clock.nowMs());
    return tracker.notable.get("a")?.health.state;
  };
  return { clock, times, stateAfter };
}

describe("the age of a condition", () => {
  it("the age of a condition counts from its transition time if clocks are in step", async () => {
    const { stateAfter, times } = watching(T0 - 1_000);
    assert.equal(await stateAfter(8_900), "soonUnhealthy");
    assert.equal(await stateAfter(100), "unhealthy");
    assert.equal(times.skewOf("a", all), undefined);
  });

  it("the age of a condition counts from its observed change if its transition time is older: one of the clocks is wrong", async () => {
    const { stateAfter, times } = watching(T0 - 600_000);
    assert.equal(await stateAfter(0), "soonUnhealthy");
    assert.equal(await stateAfter(4_900), "soonUnhealthy");
    // A watch may have lagged for five seconds.
    assert.equal(await stateAfter(100), "unhealthy");
    assert.match(
      times.skewOf("a", all) ?? "",
      /condition Ready of node a reports that it changed 600 s before it was observed/,
    );
  });

  it("the age of a condition counts from its first observation if its transition time is in the future", async () => {
    const { stateAfter, times } = watching(T0 + 600_000);
    assert.equal(await stateAfter(9_900), "soonUnhealthy");
    assert.equal(await stateAfter(100), "unhealthy");
    assert.match(times.skewOf("a", all) ?? "", /600 s after it was observed/);
    assert.equal(
      times.skewOf("a", (type) => type === "DiskPressure"),
      undefined,
      "nothing is recorded about a condition that no rule uses",
    );
  });

  it("the age of a condition does not jump when the agent's clock is set forward, nor stop when it is set back", async () => {
    for (const setByMs of [3_600_000, -3_600_000]) {
      const { clock, stateAfter } = watching(T0);
      clock.setByMs = setByMs;
      assert.equal(await stateAfter(9_900), "soonUnhealthy", `${setByMs}`);
      assert.equal(await stateAfter(200), "unhealthy", `${setByMs}`);
    }
  });

  it("the age of a condition that changed before the watch began is corrected by the API server's clock", async () => {
    // By the API server's clock, which is an hour behind ours, the node has just failed.
    const clock = new VirtualClock(T0);
    const failed = failedAt(T0 - 3_600_000);
    const times = new MonotonicTimes(clock, { minMs: -3_600_500, maxMs: -3_599_500 });
    const tracker = new NodeTracker(policy, [failed], clock.nowMs(), times);
    assert.equal(tracker.notable.get("a")?.health.state, "soonUnhealthy");
    await clock.advance(9_000);
    tracker.advance(clock.nowMs());
    assert.equal(tracker.notable.get("a")?.health.state, "soonUnhealthy");
    await clock.advance(2_000);
    tracker.advance(clock.nowMs());
    assert.equal(tracker.notable.get("a")?.health.state, "unhealthy");
  });

  it("the age of a condition is forgotten with the node, and when the condition changes again in step", () => {
    const { times } = watching(T0 - 600_000);
    const again = { type: "updated", previous: failedAt(T0 - 600_000), object: failedAt(T0) } as const;
    times.observe(again);
    assert.equal(times.skewOf("a", all), undefined);
    const other = watching(T0 - 600_000).times;
    other.observe({ type: "deleted", object: well });
    assert.equal(other.skewOf("a", all), undefined);
  });

  it("the difference between clocks is reported, unless it is a second or two", () => {
    assert.equal(describeClockOffset(undefined), undefined);
    assert.equal(describeClockOffset({ minMs: -2_500, maxMs: -1_500 }), undefined);
    assert.match(describeClockOffset({ minMs: -60_500, maxMs: -59_500 }) ?? "", /60 s ahead of the API server's/);
    assert.match(describeClockOffset({ minMs: 59_500, maxMs: 60_500 }) ?? "", /60 s behind the API server's/);
  });
});
