import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  NOTHING_READ,
  recordFailedReading,
  recordReading,
} from "../../../../../../src/remediator/machine/rules/proof/off-proof.ts";
import { POWER_PROOF_AGE_MAX_MS } from "../../../../../../src/remediator/machine/model/decision/timings.ts";

const OFF = { state: "Off", raw: "Off" } as const;

/** A host that was read Off at each of these times. */
function readOffAt(...timesMs: number[]) {
  return timesMs.reduce((power, atMs) => recordReading(power, OFF, atMs), NOTHING_READ);
}

describe("the proof that a host is off", () => {
  it("the proof that a host is off is made by two Off readings in a row, and kept by readings that come in time", () => {
    assert.equal(readOffAt(0).provenAtMs, undefined);
    assert.equal(readOffAt(0, 20).provenAtMs, 20);
    assert.equal(readOffAt(0, 20, 1_520, 1_520 + POWER_PROOF_AGE_MAX_MS).provenAtMs, 20);
  });

  it("the proof that a host is off is not revived by one Off reading after a long time without any: that takes two", () => {
    const hourMs = 3_600_000;
    assert.equal(readOffAt(0, 20, hourMs).provenAtMs, undefined);
    assert.equal(readOffAt(0, 20, 20 + 2 * POWER_PROOF_AGE_MAX_MS).provenAtMs, undefined);
    assert.equal(readOffAt(0, 20, hourMs, hourMs + 20).provenAtMs, hourMs + 20);
  });

  it("the proof that a host is off is not made of two Off readings with a long time between them", () => {
    assert.equal(readOffAt(0, 3_600_000).provenAtMs, undefined);
  });

  it("the proof that a host is off ends with a reading that fails once it is too old, or that is not Off", () => {
    const power = readOffAt(0, 20);
    assert.equal(recordFailedReading(power, 1_520).provenAtMs, 20);
    assert.equal(recordFailedReading(power, 20 + POWER_PROOF_AGE_MAX_MS).provenAtMs, undefined);
    assert.equal(recordReading(power, { state: "On", raw: "On" }, 1_520).provenAtMs, undefined);
  });
});
