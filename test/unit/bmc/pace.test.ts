import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace } from "../../../src/bmc/pace.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { settle } from "../../lib/virtual-clock.ts";

/** A clock whose timers run when they are told to: each time is one turn of the event loop. */
function turningClock() {
  const timers: (() => void)[] = [];
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    schedule: (_delayMs, callback) => {
      timers.push(callback);
      return { cancel: () => undefined };
    },
  };
  const turn = async (): Promise<void> => {
    for (const run of timers.splice(0)) run();
    await settle();
  };
  return { clock, timers, turn };
}

test("of many that begin at once some do in each turn of the event loop, in the order of arrival", async () => {
  const { clock, timers, turn } = turningClock();
  const pace = new Pace(clock);
  const begun: number[] = [];
  for (let index = 0; index < 10; index += 1) void pace.begin().then(() => begun.push(index));
  const counts: number[] = [];
  for (let turns = 0; turns < 4; turns += 1) {
    await settle();
    counts.push(begun.length);
    await turn();
  }
  assert.deepEqual(counts, [4, 8, 10, 10]);
  assert.deepEqual(begun, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(timers.length, 0, "nothing is left to run");
});

test("who comes alone does not wait", async () => {
  const { clock, turn } = turningClock();
  const pace = new Pace(clock);
  for (let times = 0; times < 10; times += 1) {
    await pace.begin();
    await turn();
  }
});
