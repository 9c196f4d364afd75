import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import type { SnapshotChanges } from "../../snapshots.ts";
import { NOW, snapshot, said } from "../../snapshots.ts";

describe("a stop switch that cannot be read", () => {
  const given = (remainingMs: number): SnapshotChanges => {
    const hold = { reason: "PauseUnknown", message: "the switch is not read yet" } as const;
    const attempt = { action: "ForceOff", sent: true, done: false } as const;
    return { state: "Verifying", attempt, other: { hold, remainingMs } };
  };

  it("a stop switch that cannot be read is waited for until the state is out of time, if an earlier attempt may have left the host off", () => {
    const said = decide(snapshot(given(60_000)), NOW);
    const waiting = decide(snapshot({ ...given(60_000), status: said.status ?? assert.fail("it says so") }), NOW);
    assert.deepEqual(
      { effects: waiting.effects, nextCheckMs: waiting.nextCheckMs },
      { effects: [], nextCheckMs: 60_000 },
    );
  });

  it("a stop switch that cannot be read has the power read once that time is over", () => {
    assert.deepEqual(decide(snapshot(given(0)), NOW).effects, [{ do: "readPower" }]);
  });
});

describe("a stop switch that could be read again", () => {
  const resumed = (reason: string): string | undefined => {
    const attempt = { action: "ForceOff", deadlineMs: NOW.epochMs + 7_000 } as const;
    const status = { conditions: [said(reason, "held")] };
    const observations = { taintCleared: true };
    const { status: next } = decide(snapshot({ state: "PoweringOff", attempt, status, observations }), NOW);
    assert.equal(next?.timeline?.at(-1)?.step, "Resumed");
    return next.attempt?.deadline;
  };

  it("a stop switch that could be read again leaves the state the time that it had left, unless an operator had paused power-offs", () => {
    assert.equal(Date.parse(resumed("PauseUnknown") ?? ""), NOW.epochMs + 7_000);
    assert.ok(Date.parse(resumed("Paused") ?? "") > NOW.epochMs + 7_000);
  });
});

describe("a pause that cannot be read any more", () => {
  for (const reason of ["Paused", "Maintenance"]) {
    it(`a pause that cannot be read any more is reported as unknown after ${reason}, and the deadline of the state begins again`, () => {
      const hold = { reason: "PauseUnknown", message: "the switch is not read" } as const;
      const status = { conditions: [said(reason, "held by an operator")] };
      const observations = { taintCleared: true };
      const attempt = { action: "ForceOff", deadlineMs: NOW.epochMs - 3_600_000 } as const;
      for (const state of ["PoweringOff", "Verifying"] as const) {
        const { status: next, effects } = decide(
          snapshot({ state, attempt, status, observations, other: { hold } }),
          NOW,
        );
        assert.deepEqual([next?.timeline?.at(-1)?.step, effects], ["PauseUnknown", []]);
        assert.ok(Date.parse(next?.attempt?.deadline ?? "") > NOW.epochMs);
      }
    });
  }
});
