import assert from "node:assert/strict";
import { test } from "node:test";
import { collectAtRest } from "../../../src/cli/agent/memory-at-rest.ts";
import { systemMemory } from "../../../src/runtime/memory.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const MINUTE_MS = 60_000;

/**
 * Runs an agent whose main thread is busy for the given share of each minute. @returns the minutes in which it
 * collected garbage.
 */
async function collectionsOf(sharePerMinute: readonly number[]): Promise<number[]> {
  const clock = new VirtualClock();
  const collections: number[] = [];
  const shares = [...sharePerMinute];
  const stop = new AbortController();
  const memory = {
    collect: () => void collections.push(clock.monotonicMs() / MINUTE_MS),
    // The first call only starts the measurement.
    busyShare: () => (clock.monotonicMs() === 0 ? 1 : (shares.shift() ?? 0)),
  };
  const running = collectAtRest(clock, memory, stop.signal);
  await clock.advance(sharePerMinute.length * MINUTE_MS);
  stop.abort();
  await running;
  return collections;
}

void test("an agent at rest collects its garbage after one minute, and then every ten minutes", async () => {
  assert.deepEqual(await collectionsOf(Array<number>(25).fill(0.02)), [1, 11, 21]);
});

void test("an agent that is busy collects nothing by itself until it has been at rest for a minute", async () => {
  assert.deepEqual(await collectionsOf([0.02, 0.5, 0.5, 0.02, 0.02]), [1, 4]);
});

void test("the memory of a process shrinks when garbage is collected, and its busy share is a share", () => {
  const memory = systemMemory();
  let garbage: unknown[] | undefined = Array.from({ length: 1_000_000 }, (_, index) => ({ index }));
  const beforeBytes = process.memoryUsage().heapUsed;
  assert.equal(garbage.length, 1_000_000);
  garbage = undefined;
  memory.collect();
  const freedBytes = beforeBytes - process.memoryUsage().heapUsed;
  assert.ok(freedBytes > 8 * 2 ** 20, `${freedBytes} bytes were freed`);
  const share = memory.busyShare();
  assert.ok(share >= 0 && share <= 1, `${share}`);
});
