import assert from "node:assert/strict";
import { inspect } from "node:util";
import { describe, it } from "node:test";
import { sleep } from "../../../src/runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../src/runtime/deadline.ts";
import { formatDuration, parseDurationMs } from "../../../src/runtime/duration.ts";
import { backoffMs } from "../../../src/runtime/random.ts";
import { Secret } from "../../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";
import { parseTimeMs, toMicroTime, toTime } from "../../../src/runtime/time.ts";

const never = new AbortController().signal;

describe("durations in Go's form", () => {
  const table: [string, number | undefined][] = [
    ["300s", 300_000],
    ["1h30m", 5_400_000],
    ["1.5m", 90_000],
    ["250ms", 250],
    ["0", 0],
    ["-10s", -10_000],
    ["", undefined],
    ["10", undefined],
    ["s", undefined],
    ["5 s", undefined],
    ["1d", undefined],
  ];
  for (const [text, wanted] of table) {
    it(`the duration ${JSON.stringify(text)} in Go's form is read as ${wanted}`, () =>
      assert.equal(parseDurationMs(text), wanted));
  }

  it("durations in Go's form are written as Go writes them, in whole seconds", () => {
    const texts = [0, 999, 30_000, 60_000, 300_000, 3_600_000, 5_430_000].map(formatDuration);
    assert.deepEqual(texts, ["0s", "0s", "30s", "1m0s", "5m0s", "1h0m0s", "1h30m30s"]);
  });
});

describe("a deadline", () => {
  it("a deadline ends work that ignores its signal", async () => {
    const stuck = withDeadline(systemClock, "stuck call", 20, never, () => new Promise<never>(() => undefined));
    await assert.rejects(stuck, (error) => error instanceof DeadlineError && /stuck call/.test(error.message));
  });

  it("a deadline aborts the signal of the work", async () => {
    let aborted = false;
    const work = (signal: AbortSignal): Promise<void> => {
      signal.addEventListener("abort", () => (aborted = true));
      return sleep(systemClock, 60_000, signal);
    };
    await assert.rejects(withDeadline(systemClock, "long call", 20, never, work), DeadlineError);
    assert.equal(aborted, true);
  });

  it("a deadline passes the caller's abort on at once, with its reason", async () => {
    const caller = new AbortController();
    const work = withDeadline(systemClock, "call", 60_000, caller.signal, (signal) =>
      sleep(systemClock, 60_000, signal),
    );
    caller.abort(new Error("lease lost"));
    await assert.rejects(work, /lease lost/);
  });

  it("a deadline returns the result of work that ends in time, and what it throws", async () => {
    assert.equal(await withDeadline(systemClock, "call", 1_000, never, () => Promise.resolve(7)), 7);
    await assert.rejects(
      withDeadline(systemClock, "call", 1_000, never, () => Promise.reject(new Error("broken"))),
      /broken/,
    );
  });
});

describe("a Secret", () => {
  it("a Secret cannot be printed by mistake", () => {
    const secret = new Secret("hunter2");
    const printed = [
      String(secret),
      ` ${String(secret)}`,
      JSON.stringify({ secret }),
      inspect({ secret }, { depth: 9, showHidden: true }),
    ];
    for (const text of printed) assert.ok(!text.includes("hunter2"), text);
    assert.equal(secret.reveal(), "hunter2");
  });
});

describe("times", () => {
  it("times are written as Kubernetes wants them", () => {
    assert.equal(toTime(1_700_000_000_999), "2023-11-14T22:13:20Z");
    assert.equal(toMicroTime(1_700_000_000_009), "2023-11-14T22:13:20.009000Z");
    assert.equal(parseTimeMs("2023-11-14T22:13:20.009000Z"), 1_700_000_000_009);
    assert.equal(parseTimeMs("yesterday"), undefined);
    assert.equal(parseTimeMs(undefined), undefined);
  });
});

describe("backoff", () => {
  it("backoff doubles, stays below its maximum and never waits less than half", () => {
    for (const failures of [0, 1, 5, 40]) {
      const ms = backoffMs(systemRandom, 100, 10_000, failures);
      const ceiling = Math.min(10_000, 100 * 2 ** Math.min(failures, 30));
      assert.ok(ms >= ceiling / 2 && ms <= ceiling, `${failures}: ${ms}`);
    }
  });
});
