import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  EarlyStarts,
  EARLY_AT_ONCE,
  EARLY_NODES_MAX,
  EARLY_NODES_MS,
} from "../../../../src/remediator/early/release-limits.ts";
import { RatePermits } from "../../../../src/remediator/early/rate-permits.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import type { Wave } from "../../../../src/remediator/early/wave.ts";
import {
  mayRead,
  mayUse,
  NO_WAVE,
  noteOverdue,
  noteReading,
  WAVE_MS,
  WAVE_PAUSE_MAX_MS,
  WAVE_PAUSE_MIN_MS,
  WAVE_SAMPLE,
} from "../../../../src/remediator/early/wave.ts";

/** A wave in which `count` hosts were read, `off` of them as Off. */
function readings(off: number, count: number, wave: Wave = noteOverdue(NO_WAVE, 0), nowMs = 1_000): Wave {
  let next = wave;
  for (let index = 0; index < count; index += 1) next = noteReading(next, index < off, nowMs);
  return next;
}

describe("a wave of nodes that stop renewing their leases", () => {
  it("a wave has no more than 8 of its hosts read before those readings are in", () => {
    assert.equal(mayRead(readings(0, 0), WAVE_SAMPLE - 1, 1_000), true);
    assert.equal(mayRead(readings(0, 0), WAVE_SAMPLE, 1_000), false);
    assert.equal(mayRead(readings(3, 3), WAVE_SAMPLE - 3, 1_000), false);
  });

  it("a wave continues if 4 of its first 8 hosts read Off", () => {
    const wave = readings(4, WAVE_SAMPLE);
    assert.equal(mayRead(wave, 100, 1_000), true);
    assert.equal(mayUse(wave, 10, 1_000), true);
  });

  it("a wave is stopped for 60 s if 3 of its first 8 hosts read Off, then for twice as long each time, up to 10 min", () => {
    let wave = readings(3, WAVE_SAMPLE);
    let nowMs = 1_000;
    for (const pauseMs of [60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
      assert.equal(mayRead(wave, 0, nowMs + pauseMs - 1), false);
      assert.equal(mayUse(wave, 0, nowMs + pauseMs - 1), false);
      nowMs += pauseMs;
      assert.equal(mayRead(wave, 0, nowMs), true);
      wave = readings(3, WAVE_SAMPLE, noteOverdue(wave, nowMs), nowMs);
    }
    assert.deepEqual([WAVE_PAUSE_MIN_MS, WAVE_PAUSE_MAX_MS], [60_000, 600_000]);
  });

  it("a wave of hosts that are off ends the growth of the pause", () => {
    const passed = readings(8, WAVE_SAMPLE, noteOverdue(readings(0, WAVE_SAMPLE), 61_000), 62_000);
    assert.equal(passed.pauseMs, 0);
  });

  it("a wave proves nothing before its first 8 hosts were read, or all of them if it has fewer", () => {
    const wave = readings(3, 3);
    assert.equal(mayUse(wave, 1, 1_000), false);
    assert.equal(mayUse(wave, 0, 1_000), true);
  });

  it("a wave ends 15 s after the first of its nodes became overdue, and a later node begins another wave", () => {
    const wave = readings(8, WAVE_SAMPLE);
    assert.equal(noteOverdue(wave, WAVE_MS), wave);
    assert.deepEqual(noteOverdue(wave, WAVE_MS + 1), { ...wave, beganMs: WAVE_MS + 1, read: 0, off: 0 });
  });
});

describe("the limits of early releases", () => {
  it("no more than 4 nodes are released early at once", () => {
    const starts = new EarlyStarts();
    assert.equal(starts.mayStart({ proven: 1, releasing: EARLY_AT_ONCE - 2 }, 0), true);
    assert.equal(starts.mayStart({ proven: 1, releasing: EARLY_AT_ONCE - 1 }, 0), false);
  });

  it("no more than 64 nodes are released early in 10 minutes, however often each is noted", () => {
    const starts = new EarlyStarts();
    const present = new Set<string>();
    for (let index = 0; index < EARLY_NODES_MAX; index += 1) {
      assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, 1_000), true);
      present.add(`uid-${index}`);
      starts.note(present, 1_000);
      starts.note(present, 2_000);
    }
    starts.note(new Set(), 3_000);
    assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, EARLY_NODES_MS + 999), false);
    assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, EARLY_NODES_MS + 1_000), true);
  });
});

describe("early remediations that exist for long", () => {
  it("early remediations that exist for long are not counted as new ones again", () => {
    const starts = new EarlyStarts();
    const present = new Set(Array.from({ length: EARLY_NODES_MAX }, (_, index) => `uid-${index}`));
    for (let nowMs = 0; nowMs < EARLY_NODES_MS; nowMs += 1_000) starts.note(present, nowMs);
    assert.equal(starts.mayStart({ proven: 0, releasing: 0 }, EARLY_NODES_MS - 1), false);
    for (let nowMs = EARLY_NODES_MS; nowMs <= 6 * EARLY_NODES_MS; nowMs += 1_000) {
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
