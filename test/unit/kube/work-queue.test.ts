import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { DELAY_MAX_MS, WorkQueue } from "../../../src/kube/reconcile/work-queue.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";

const never = new AbortController().signal;

test("a key that is added many times is given out once", async () => {
  const queue = new WorkQueue(new VirtualClock());
  queue.add("a");
  queue.add("b");
  queue.add("a");
  assert.equal(await queue.take(never), "a");
  assert.equal(await queue.take(never), "b");
  assert.equal(queue.depth, 0);
});

test("a key that is added while it is being worked on comes back after that, and not before", async () => {
  const queue = new WorkQueue(new VirtualClock());
  queue.add("a");
  await queue.take(never);
  queue.add("a");
  let again = false;
  const taken = (async () => {
    await queue.take(never);
    again = true;
  })();
  await settle();
  assert.equal(again, false);
  queue.done("a");
  await taken;
  assert.equal(again, true);
});

test("a later delay does not move an earlier one, and an earlier one moves a later one", async () => {
  const clock = new VirtualClock();
  const queue = new WorkQueue(clock);
  queue.add("a", 100);
  queue.add("a", 500);
  await clock.advance(100);
  assert.equal(queue.depth, 1);
  await queue.take(never);
  queue.done("a");

  queue.add("a", 500);
  queue.add("a", 50);
  await clock.advance(50);
  assert.equal(queue.depth, 1);
  assert.equal(clock.pending, 0, "the later timer is canceled");
});

test("a delay beyond what timers can count is cut", async () => {
  const clock = new VirtualClock();
  const queue = new WorkQueue(clock);
  queue.add("a", Number.MAX_SAFE_INTEGER);
  await clock.advance(DELAY_MAX_MS);
  assert.equal(queue.depth, 1);
});

test("waiting for a key ends with the signal", async () => {
  const queue = new WorkQueue(new VirtualClock());
  const stop = new AbortController();
  const taken = queue.take(stop.signal);
  stop.abort(new Error("stop"));
  await assert.rejects(taken, /stop/);
});

test("closing cancels all timers", () => {
  const clock = new VirtualClock();
  const queue = new WorkQueue(clock);
  queue.add("a", 100);
  queue.close();
  queue.add("b", 100);
  assert.equal(clock.pending, 0);
});

type Step =
  | { do: "add"; key: string; delayMs: number }
  | { do: "take" }
  | { do: "done" }
  | { do: "wait"; byMs: number };

const steps = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant("add" as const),
      key: fc.constantFrom("a", "b", "c"),
      delayMs: fc.constantFrom(0, 10, 30),
    }),
    fc.constant({ do: "take" as const }),
    fc.constant({ do: "done" as const }),
    fc.record({ do: fc.constant("wait" as const), byMs: fc.constantFrom(5, 20) }),
  ),
  { maxLength: 40 },
);

test("no key of a work queue is out twice or early, and every add is followed by work", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (script: Step[]) => {
      const clock = new VirtualClock();
      const queue = new WorkQueue(clock);
      const out: string[] = [];
      /** The due time of each added key that the queue has not returned yet. */
      const owed = new Map<string, number>();
      const takeOne = async (): Promise<void> => {
        const key = await queue.take(never);
        assert.ok(!out.includes(key), `${key} is out twice`);
        const dueMs = owed.get(key);
        assert.ok(dueMs !== undefined && dueMs <= clock.monotonicMs(), `${key} came early or for nothing`);
        owed.delete(key);
        out.push(key);
      };
      const hasReady = (): boolean =>
        [...owed].some(([key, dueMs]) => dueMs <= clock.monotonicMs() && !out.includes(key));
      for (const step of script) {
        if (step.do === "add") {
          queue.add(step.key, step.delayMs);
          const dueMs = clock.monotonicMs() + step.delayMs;
          owed.set(step.key, Math.min(owed.get(step.key) ?? dueMs, dueMs));
        } else if (step.do === "take" && hasReady()) await takeOne();
        else if (step.do === "done") {
          const key = out.shift();
          if (key !== undefined) queue.done(key);
        } else if (step.do === "wait") await clock.advance(step.byMs);
      }
      await clock.advance(100);
      for (const key of out.splice(0)) queue.done(key);
      while (owed.size > 0) await takeOne();
      assert.equal(queue.depth + queue.delayedCount, 0);
    }),
    { numRuns: 60 },
  );
});
