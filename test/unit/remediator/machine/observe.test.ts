import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { RemediationEvent } from "../../../../src/remediator/machine/model/facts/event.ts";
import { nothingObserved } from "../../../../src/remediator/machine/model/facts/nothing-observed.ts";
import { observe } from "../../../../src/remediator/machine/observe.ts";

const FENCE: readonly RemediationEvent[] = [
  { type: "HostClaimed", targetUid: "target-uid" },
  { type: "IdentityRead", verdict: { verified: true, message: "" }, atMs: 10 },
  { type: "OrderStarted" },
  { type: "OrderAnswered", attemptId: "a", action: "ForceOff", failure: undefined, atMs: 20 },
  { type: "PowerRead", reading: { state: "Off", raw: "Off" }, atMs: 30 },
  { type: "PowerRead", reading: { state: "Off", raw: "Off" }, atMs: 60 },
];

describe("observe", () => {
  it("observe proves a host off by two readings after the order, and ends the proof at any other reading", () => {
    const observations = FENCE.reduce(observe, nothingObserved());
    assert.equal(observations.power.provenAtMs, 60);
    const next = observe(observations, { type: "PowerRead", reading: { state: "On", raw: "On" }, atMs: 90 });
    assert.equal(next.power.provenAtMs, undefined);
  });

  it("observe does not change its arguments", () => {
    const observations = nothingObserved();
    FENCE.reduce(observe, observations);
    assert.deepEqual(observations, nothingObserved());
  });

  it("observe comes to the same by events that were written as JSON and read again", () => {
    const read = JSON.parse(JSON.stringify(FENCE)) as RemediationEvent[];
    assert.deepEqual(read.reduce(observe, nothingObserved()), FENCE.reduce(observe, nothingObserved()));
  });

  it("observe is all that adds to the observations of a session", () => {
    const source = readFileSync(
      new URL("../../../../src/remediator/controller/session/session.ts", import.meta.url),
      "utf8",
    );
    assert.deepEqual(source.match(/#observations\b[^;]*?=[^=;][^;]*;/gu), [
      "#observations: Observations = nothingObserved();",
      "#observations = observe(this.#observations, event);",
    ]);
  });
});
