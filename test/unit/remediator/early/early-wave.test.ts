import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EarlyStarts } from "../../../../src/remediator/early/release-limits.ts";
import { RatePermits } from "../../../../src/remediator/early/rate-permits.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import type { Wave } from "../../../../src/remediator/early/wave.ts";
import { mayRead, mayUse, NO_WAVE, noteOverdue, noteReading } from "../../../../src/remediator/early/wave.ts";

const TEN_MINUTES_MS = 600_000;

/** A wave in which `count` hosts were read, `off` of them as Off. */
function readings(off: number, count: number, wave: Wave = noteOverdue(NO_WAVE, 0), nowMs = 1_000): Wave {
  let next = wave;
  for (let index = 0; index < count; index += 1) next = noteReading(next, index < off, nowMs);
  return next;
}

describe("a wave of nodes that stop renewing their leases", () => {
  it("a wave has no more than 8 of its hosts read before those readings are in", () => {
    assert.equal(mayRead(readings(0, 0), 7, 1_000), true);
    assert.equal(mayRead(readings(0, 0), 8, 1_000), false);
    assert.equal(mayRead(readings(3, 3), 5, 1_000), false);
  });

  it("a wave continues if 4 of its first 8 hosts read Off", () => {
    const wave = readings(4, 8);
    assert.equal(mayRead(wave, 100, 1_000), true);
    assert.equal(mayUse(wave, 10, 1_000), true);
  });

  it("a wave is stopped for 60 s if 3 of its first 8 hosts read Off, then for twice as long each time, up to 10 min", () => {
    let wave = readings(3, 8);
    let nowMs = 1_000;
    for (const pauseMs of [60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
      assert.equal(mayRead(wave, 0, nowMs + pauseMs - 1), false);
      assert.equal(mayUse(wave, 0, nowMs + pauseMs - 1), false);
      nowMs += pauseMs;
      assert.equal(mayRead(wave, 0, nowMs), true);
      wave = readings(3, 8, noteOverdue(wave, nowMs), nowMs);
    }
  });

  it("a wave of hosts that are off ends the growth of the pause", () => {
    const passed = readings(8, 8, noteOverdue(readings(0, 8), 61_000), 62_000);
    assert.equal(passed.pauseMs, 0);
  });

  it("a wave proves nothing before its first 8 hosts were read, or all of them if it has fewer", () => {
    const wave = readings(3, 3);
    assert.equal(mayUse(wave, 1, 1_000), false);
    assert.equal(mayUse(wave, 0, 1_000), true);
  });

  it("a wave ends 15 s after the first of its nodes became overdue, and a later node begins another wave", () => {
    const wave = readings(8, 8);
    assert.equal(noteOverdue(wave, 15_000), wave);
    assert.deepEqual(noteOverdue(wave, 15_001), { ...wave, beganMs: 15_001, read: 0, off: 0 });
  });
});

describe("the limits of early releases", () => {
  it("no more than 4 nodes are released early at once", () => {
    const starts = new EarlyStarts();
    assert.equal(starts.mayStart({ proven: 1, releasing: 2 }, 0), true);
    assert.equal(starts.mayStart({ proven: 1, releasing: 3 }, 0), false);
  });

  it("no more than 64 nodes are released early in 10 minutes, however often each is noted", () => {
    const starts = new EarlyStarts();
    const present = new Set<string>();
    for (let index = 0; index < 64; index += 1) {
      assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, 1_000), true);
      present.add(`uid-${index}`);
      starts.note(present, 1_000);
      starts.note(present, 2_000);
    }
    starts.note(new Set(), 3_000);
    assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, TEN_MINUTES_MS + 999), false);
    assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, TEN_MINUTES_MS + 1_000), true);
  });
});

describe("early remediations that exist for long", () => {
  it("early remediations that exist for long are not counted as new ones again", () => {
    const starts = new EarlyStarts();
    const present = new Set(Array.from({ length: 64 }, (_, index) => `uid-${index}`));
    for (let nowMs = 0; nowMs < TEN_MINUTES_MS; nowMs += 1_000) starts.note(present, nowMs);
    assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, TEN_MINUTES_MS - 1), false);
    for (let nowMs = TEN_MINUTES_MS; nowMs <= 6 * TEN_MINUTES_MS; nowMs += 1_000) {
      starts.note(present, nowMs);
      assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, nowMs), true);
    }
  });
});

describe("the permits of a second", () => {
  it("the permits of a second are given again when a second has passed since each was taken", async () => {
    const clock = new VirtualClock();
    const permits = new RatePermits(clock, 4);
    assert.deepEqual([permits.take(2), permits.take(), permits.take(2), permits.take()], [true, true, false, true]);
    await clock.advance(999);
    assert.equal(permits.take(), false);
    await clock.advance(1);
    assert.deepEqual([permits.take(4), permits.take()], [true, false]);
  });
});
