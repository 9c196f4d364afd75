import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import { DEVICE_AWAY, NOW, UNDOING, snapshot, said } from "../../snapshots.ts";

describe("a device that could not be reached", () => {
  const decided = (state: "PoweringOff" | "Undoing", pauseMs: number) => {
    const device = { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + pauseMs };
    const status = { conditions: [said(DEVICE_AWAY.reason, DEVICE_AWAY.message)] };
    return decide(snapshot({ state, observations: { ...UNDOING, device }, status }), NOW);
  };

  for (const [state, effect] of [
    ["PoweringOff", "readPower"],
    ["Undoing", "readWhole"],
  ] as const) {
    it(`a device that could not be reached in ${state} is called again when its pause is over, and not before`, () => {
      assert.deepEqual(decided(state, 700), { notes: [], effects: [], nextCheckMs: 700 });
      assert.equal(decided(state, 0).effects[0]?.do, effect);
    });
  }
});
