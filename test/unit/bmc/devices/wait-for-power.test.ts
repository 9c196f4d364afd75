import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { PowerReading, PowerState } from "../../../../src/bmc/interface/driver.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { POLL_MS_MIN, waitForPower } from "../../../../src/bmc/devices/wait-for-power.ts";
import type { PowerProof } from "../../../../src/bmc/devices/wait-for-power.ts";
import { sleep } from "../../../../src/runtime/clock.ts";
import type { Clock } from "../../../../src/runtime/clock.ts";

type Step = PowerState | BmcError | "Hang";

/** A clock that jumps to the next timer when nothing else is left to do. */
function jumpingClock(): Clock & { nowMs(): number } {
  let nowMs = 0;
  const timers = new Set<{ atMs: number; run: () => void }>();
  let jumping = false;
  const jump = (): void => {
    if (jumping) return;
    jumping = true;
    setImmediate(() => {
      jumping = false;
      const [next] = [...timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) return;
      timers.delete(next);
      nowMs = Math.max(nowMs, next.atMs);
      next.run();
      jump();
    });
  };
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    schedule: (delayMs, run) => {
      const timer = { atMs: nowMs + delayMs, run };
      timers.add(timer);
      jump();
      return { cancel: () => timers.delete(timer) };
    },
  };
}

const passing = (): BmcError => new BmcError("Unreachable", "gone");

/** Plays the steps, the last one repeatedly, and records the time of each read. */
async function play(
  steps: readonly Step[],
  options: {
    timeoutMs?: number;
    pollMs?: number;
    freshReads?: number;
    signal?: AbortSignal;
    want?: "Off" | "On";
    takesMs?: number;
  } = {},
): Promise<{ proof: PowerProof; readsAtMs: number[] }> {
  const clock = jumpingClock();
  const signal = options.signal ?? new AbortController().signal;
  const readsAtMs: number[] = [];
  const device = {
    readPower: async (): Promise<PowerReading> => {
      const step = steps[Math.min(readsAtMs.length, steps.length - 1)] ?? "Unknown";
      readsAtMs.push(clock.monotonicMs());
      if (options.takesMs !== undefined) await sleep(clock, options.takesMs, signal);
      if (step === "Hang") return new Promise(() => undefined);
      return step instanceof BmcError ? Promise.reject(step) : Promise.resolve({ state: step, raw: step });
    },
  };
  const { timeoutMs = 10_000, pollMs = 500, freshReads = 2, want = "Off" } = options;
  const proof = await waitForPower(device, want, { clock, pollMs, timeoutMs, freshReads }, signal);
  return { proof, readsAtMs };
}

test("two Off reads in a row prove it, one does not", async () => {
  const { proof, readsAtMs } = await play(["On", "Off", "Off"]);
  assert.equal(proof.proven, true);
  assert.deepEqual(readsAtMs, [0, 500, 520], "the confirming read does not wait for the next poll");
  assert.equal((await play(["Off", "On"])).proof.proven, false);
});

test("anything between two Off reads starts the count again", async () => {
  for (const between of ["On", "Changing", "Unknown", passing()] as const) {
    const { proof, readsAtMs } = await play(["Off", between, "Off", "Off"]);
    assert.equal(proof.proven, true);
    assert.equal(readsAtMs.length, 4);
    assert.equal((await play(["Off", between, "Off", "On"])).proof.proven, false);
  }
});

test("failures that may pass are waited out until the time is over, and the last one is reported", async () => {
  const { proof, readsAtMs } = await play([new BmcError("Busy", "not ready")], { timeoutMs: 5_000, pollMs: 1_000 });
  assert.ok(!proof.proven);
  assert.equal(proof.error?.code, "Busy");
  assert.equal(proof.last, undefined);
  assert.equal(readsAtMs.length, 5);
});

test("a failure that will not pass ends the wait at once", async () => {
  const { proof, readsAtMs } = await play(["On", new BmcError("AuthFailed", "refused")]);
  assert.ok(!proof.proven);
  assert.equal(proof.error?.code, "AuthFailed");
  assert.equal(proof.last?.state, "On");
  assert.equal(readsAtMs.length, 2);
});

test("a read that hangs ends with the wait, as a time-out", async () => {
  const { proof } = await play(["Off", "Hang"], { timeoutMs: 3_000 });
  assert.ok(!proof.proven);
  assert.equal(proof.error?.code, "Timeout");
});

test("no BMC is polled faster than the bound", async () => {
  const { readsAtMs } = await play(["On"], { pollMs: 1, timeoutMs: 1_000 });
  assert.deepEqual(readsAtMs, [0, POLL_MS_MIN, 2 * POLL_MS_MIN, 3 * POLL_MS_MIN]);
});

test("the duration of a read counts in the time to the next one, except for a rest of the BMC", async () => {
  for (const [takesMs, fromOneToTheNextMs] of [
    [200, 330],
    [300, 400],
  ] as const) {
    const { readsAtMs } = await play(["On"], { pollMs: 1, timeoutMs: 1_500, takesMs });
    assert.equal(readsAtMs[2], 2 * fromOneToTheNextMs);
  }
});

test("polls and confirming reads together make at most four calls a second", async () => {
  const { readsAtMs } = await play(["On", "On", "On", "On", "Off"], { pollMs: 1 });
  const within = (startMs: number): number => readsAtMs.filter((it) => it >= startMs && it < startMs + 1_000).length;
  assert.equal(readsAtMs.length, 6);
  assert.equal(Math.max(...readsAtMs.map(within)), 4);
});

test("On can be waited for as well", async () => {
  assert.equal((await play(["Off", "Changing", "On"], { want: "On", freshReads: 1 })).proof.proven, true);
  assert.equal((await play(["Off"], { want: "On", freshReads: 1 })).proof.proven, false);
});

test("no number of requested reads makes another state a proof", async () => {
  for (const freshReads of [0, -1]) assert.equal((await play(["On"], { freshReads })).proof.proven, false);
});

test("an abort rejects with its reason", async () => {
  const reason = new Error("lost the lease");
  await assert.rejects(play(["On"], { signal: AbortSignal.abort(reason) }), reason);
});

test("whatever a BMC shows, a proof means that the last reads in a row were all Off", async () => {
  const step = fc.oneof(
    fc.constantFrom<Step>("Off", "Off", "Off", "On", "Changing", "Unknown"),
    fc.constantFrom<Step>(passing(), new BmcError("BadResponse", "broken")),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 4 }),
      async (steps, freshReads) => {
        const { proof, readsAtMs } = await play(steps, { freshReads, timeoutMs: 6_000 });
        const seen = readsAtMs.map((_, at) => steps[Math.min(at, steps.length - 1)]);
        const inARow = seen.slice(-freshReads);
        assert.equal(proof.proven, inARow.length === freshReads && inARow.every((state) => state === "Off"));
      },
    ),
    { numRuns: 150 },
  );
});
