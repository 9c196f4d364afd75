import assert from "node:assert/strict";
import { test } from "node:test";
import { LoginThrottle } from "../../../../../src/bmc/gate/limits/login-throttle.ts";
import type { Clock } from "../../../../../src/runtime/clock.ts";
import { settle } from "../../../../lib/virtual-clock.ts";

/** A clock whose timers run on `iterate`: one iteration of the event loop. */
function steppedClock() {
  const timers: (() => void)[] = [];
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    schedule: (_delayMs, callback) => {
      timers.push(callback);
      return { cancel: () => undefined };
    },
  };
  const iterate = async (): Promise<void> => {
    for (const run of timers.splice(0)) run();
    await settle();
  };
  return { clock, timers, iterate };
}

test("a few of many logins that arrive at once start in each iteration of the event loop, in the order of arrival", async () => {
  const { clock, timers, iterate } = steppedClock();
  const throttle = new LoginThrottle(clock);
  const started: number[] = [];
  for (let index = 0; index < 10; index += 1) void throttle.start().then(() => started.push(index));
  const counts: number[] = [];
  for (let iterations = 0; iterations < 4; iterations += 1) {
    await settle();
    counts.push(started.length);
    await iterate();
  }
  assert.deepEqual(counts, [4, 8, 10, 10]);
  assert.deepEqual(started, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(timers.length, 0, "nothing is left to run");
});

test("a login that arrives alone does not wait", async () => {
  const { clock, iterate } = steppedClock();
  const throttle = new LoginThrottle(clock);
  for (let times = 0; times < 10; times += 1) {
    await throttle.start();
    await iterate();
  }
});
