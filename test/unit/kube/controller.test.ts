import assert from "node:assert/strict";
import { test } from "node:test";
import { Controller } from "../../../src/kube/reconcile/controller.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { evenRandom, recordingLogger, silentLogger } from "./support.ts";

type Options = ConstructorParameters<typeof Controller>[1];

/** A controller that works on one key at a time, unless `options` say otherwise. */
function controllerOf(clock: VirtualClock, options: Partial<Options> & Pick<Options, "reconcile">): Controller {
  const deps = { clock, random: evenRandom, logger: silentLogger };
  return new Controller(deps, { name: "test", concurrency: 1, ...options });
}

test("keys that are enqueued before the run are worked on, and the run ends with its signal", async () => {
  const seen: string[] = [];
  const stop = new AbortController();
  const controller = controllerOf(new VirtualClock(), {
    concurrency: 2,
    reconcile: async (key) => {
      seen.push(key);
    },
  });
  controller.enqueue("a");
  controller.enqueue("b");
  const run = controller.run(stop.signal);
  await settle();
  assert.deepEqual(seen, ["a", "b"]);
  stop.abort();
  await run;
});

test("one run of a key works at a time, and other keys run at the same time up to the concurrency", async () => {
  const stop = new AbortController();
  const running = new Map<string, () => void>();
  let most = 0;
  const controller = controllerOf(new VirtualClock(), {
    concurrency: 2,
    reconcile: async (key) => {
      assert.ok(!running.has(key));
      await new Promise<void>((resolve) => {
        running.set(key, resolve);
        most = Math.max(most, running.size);
      });
    },
  });
  const run = controller.run(stop.signal);
  for (const key of ["a", "a", "b", "c"]) controller.enqueue(key);
  await settle();
  assert.deepEqual([...running.keys()], ["a", "b"]);
  controller.enqueue("a");
  for (let turn = 0; turn < 4; turn++) {
    const [first] = running;
    if (first === undefined) break;
    running.delete(first[0]);
    first[1]();
    await settle();
  }
  assert.equal(most, 2);
  assert.equal(running.size, 0, "a, b, c and a again have all been worked on");
  stop.abort();
  await run;
});

test("a key that fails waits twice as long each time up to the bound, and success forgets that", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const startedMs: number[] = [];
  let failing = true;
  const controller = controllerOf(clock, {
    minBackoffMs: 100,
    maxBackoffMs: 400,
    reconcile: async () => {
      startedMs.push(clock.monotonicMs());
      if (failing) throw new Error("not yet");
    },
  });
  controller.enqueue("a");
  const run = controller.run(stop.signal);
  await clock.advance(1_300);
  // 0.75 of 100, 200, 400, 400 …
  assert.deepEqual(startedMs, [0, 75, 225, 525, 825, 1_125]);
  failing = false;
  await clock.advance(400);
  failing = true;
  controller.enqueue("a");
  await clock.advance(100);
  assert.deepEqual(startedMs.slice(6), [1_425, 1_700, 1_775]);
  stop.abort();
  await run;
});

test("the wait that a server asks for is kept", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const startedMs: number[] = [];
  const controller = controllerOf(clock, {
    reconcile: async () => {
      startedMs.push(clock.monotonicMs());
      throw new KubeError("TooManyRequests", "slow down", { retryAfterMs: 7_000 });
    },
  });
  controller.enqueue("a");
  const run = controller.run(stop.signal);
  await clock.advance(7_001);
  assert.deepEqual(startedMs, [0, 7_000]);
  stop.abort();
  await run;
});

test("requeueAfterMs looks again without counting as a failure", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  let runs = 0;
  const controller = controllerOf(clock, {
    reconcile: async () => {
      runs += 1;
      return { requeueAfterMs: 1_000 };
    },
  });
  controller.enqueue("a");
  const run = controller.run(stop.signal);
  await clock.advance(3_500);
  assert.equal(runs, 4);
  stop.abort();
  await run;
  assert.equal(clock.pending, 0, "nothing is left running");
});

test("a reconciler that is always due again cannot start more often than the bound", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  let runs = 0;
  const controller = controllerOf(clock, {
    startsPerSecondMax: 10,
    reconcile: async () => {
      runs += 1;
      return { requeueAfterMs: 0 };
    },
  });
  controller.enqueue("a");
  const run = controller.run(stop.signal);
  await clock.advance(2_000);
  assert.ok(runs >= 25 && runs <= 31, `${runs} runs: a burst of 10, then 10 a second`);
  stop.abort();
  await run;
});

test("a stop waits for the run that is under way, and does not report its error", async () => {
  const { logger, lines } = recordingLogger();
  const stop = new AbortController();
  let ended = false;
  const controller = new Controller(
    { clock: new VirtualClock(), random: evenRandom, logger },
    {
      name: "test",
      concurrency: 1,
      reconcile: async (_key, signal) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await settle();
        ended = true;
        throw new Error("stopped");
      },
    },
  );
  controller.enqueue("a");
  const run = controller.run(stop.signal);
  await settle();
  stop.abort();
  await run;
  assert.equal(ended, true);
  assert.deepEqual(lines, []);
});
