import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BmcEvidence } from "../../../../../../src/bmc/evidence/model.ts";
import { withEvidence } from "../../../../../../src/remediator/machine/rules/diagnosis/evidence.ts";
import type { Decision } from "../../../../../../src/remediator/machine/model/decision/decision.ts";
import type { Observations } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import type { StateName } from "../../../../../../src/remediator/machine/model/decision/state.ts";
import { NOW, ordered, snapshot } from "../../snapshots.ts";

const WAIT: Decision = { notes: [], effects: [], nextCheckMs: 330 };
const STEP: Decision = { notes: [], effects: [{ do: "readPower" }] };
const STORE: Decision = { notes: [], effects: [], status: { phase: "Releasing" } };
const FOUND: BmcEvidence = {
  clockAheadMs: 0,
  entries: [
    { log: "SEL", id: "1", bmcTimeMs: NOW.epochMs - 41_000, topic: "Memory", rank: 3, text: "Uncorrectable ECC" },
  ],
  sensors: [],
  lastResetMs: undefined,
  incomplete: undefined,
};
const READ = { found: FOUND, readAtMs: NOW.epochMs };

function decided(state: StateName, evidence: Observations["evidence"], decision: Decision): Decision {
  return withEvidence(
    snapshot({ state, observations: { order: ordered("Acknowledged", 100), evidence } }),
    NOW,
    decision,
  );
}

describe("the cause of death in a decision", () => {
  it("the cause of death in a decision is read while there is only waiting to be done", () => {
    assert.deepEqual(decided("PoweringOff", undefined, WAIT).effects, [{ do: "beginEvidence" }]);
    assert.equal(decided("PoweringOff", undefined, STEP), STEP);
    assert.equal(decided("PoweringOff", undefined, STORE), STORE);
    assert.equal(decided("PoweringOff", "Reading", WAIT), WAIT);
    assert.equal(decided("Verifying", undefined, WAIT), WAIT);
  });

  it("the cause of death in a decision is stored by itself only after the proof of Off", () => {
    assert.equal(decided("PoweringOff", READ, WAIT), WAIT);
    assert.equal(decided("PoweringOff", READ, STEP), STEP);
    assert.equal(decided("PoweringOff", READ, STORE).status?.evidence?.class, "Memory");
    assert.equal(decided("Releasing", READ, WAIT).status?.evidence?.class, "Memory");
    assert.equal(decided("Releasing", READ, STEP), STEP);
  });

  it("the cause of death in a decision is reported once, and keeps the status that was decided", () => {
    const { status, notes } = decided("PoweringOff", READ, STORE);
    assert.equal(status?.phase, "Releasing");
    assert.deepEqual(
      notes.map(({ type, reason }) => `${type} ${reason}`),
      ["Warning CauseOfDeath"],
    );
    assert.equal(status?.timeline?.at(-1)?.step, "CauseOfDeath");
    const again = snapshot({ state: "Releasing", observations: { evidence: READ }, status: { ...status } });
    assert.equal(withEvidence(again, NOW, WAIT), WAIT);
  });

  it("the cause of death in a decision never stops it, whatever it was judged from", () => {
    const unreadable = { found: FOUND, readAtMs: NaN };
    assert.equal(decided("PoweringOff", unreadable, STORE), STORE);
    assert.equal(decided("Releasing", unreadable, WAIT), WAIT);
  });

  it("the cause of death in a decision is left out if no device has a log", () => {
    assert.equal(decided("Releasing", { found: undefined, readAtMs: NOW.epochMs }, WAIT), WAIT);
  });
});
