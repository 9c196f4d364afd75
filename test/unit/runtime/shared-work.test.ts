import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sleep } from "../../../src/runtime/clock.ts";
import { SharedWork } from "../../../src/runtime/shared-work.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const never = new AbortController().signal;

/** Work that takes 100 ms, and returns the number of its run; the first one fails if `fails` is true. */
function countedRuns(fails = false): { clock: VirtualClock; work: SharedWork<number>; runs: () => number } {
  const clock = new VirtualClock();
  let runs = 0;
  const work = new SharedWork(async (signal) => {
    const run = (runs += 1);
    await sleep(clock, 100, signal);
    if (fails && run === 1) throw new Error("failed");
    return run;
  });
  return { clock, work, runs: () => runs };
}

describe("shared work", () => {
  it("shared work runs once for all callers that come before it begins, and again for those that come meanwhile", async () => {
    const { clock, work, runs } = countedRuns();
    const first = Promise.all([work.run(never), work.run(never)]);
    await clock.advance(50);
    const later = Promise.all([work.run(never), work.run(never)]);
    await clock.advance(150);
    assert.deepEqual([await first, await later, runs()], [[1, 1], [2, 2], 2]);
  });

  it("shared work that fails rejects the callers that waited for it, and runs again for those that came meanwhile", async () => {
    const { clock, work } = countedRuns(true);
    const failed = assert.rejects(work.run(never), /failed/);
    await clock.advance(50);
    const later = work.run(never);
    await clock.advance(150);
    await failed;
    assert.equal(await later, 2);
  });

  it("shared work continues if one of its callers leaves, and ends if all have left", async () => {
    const { clock, work, runs } = countedRuns();
    const [one, other] = [new AbortController(), new AbortController()];
    const left = assert.rejects(work.run(one.signal), /gone/);
    const kept = work.run(never);
    await clock.advance(50);
    one.abort(new Error("gone"));
    await left;
    await clock.advance(50);
    assert.equal(await kept, 1);
    const alone = assert.rejects(work.run(other.signal), /gone/);
    await clock.advance(50);
    const waiting = new AbortController();
    const queued = assert.rejects(work.run(waiting.signal), /gone/);
    waiting.abort(new Error("gone"));
    other.abort(new Error("gone"));
    await Promise.all([alone, queued]);
    await clock.advance(0);
    assert.equal(clock.pending, 0, "a run without callers ends");
    const next = work.run(never);
    await clock.advance(100);
    assert.deepEqual([await next, runs()], [3, 3]);
  });

  it("shared work does not begin for a caller whose signal has aborted", async () => {
    const { work, runs } = countedRuns();
    await assert.rejects(work.run(AbortSignal.abort(new Error("gone"))), /gone/);
    assert.equal(runs(), 0);
  });
});
