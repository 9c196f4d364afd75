import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { RemediationEvent } from "../../../src/remediator/machine/model/event.ts";
import { nothingObserved, observe } from "../../../src/remediator/machine/observe.ts";

const FENCE: readonly RemediationEvent[] = [
  { type: "HostClaimed", targetUid: "target-uid" },
  { type: "IdentityRead", verdict: { verified: true, message: "" }, atMs: 10 },
  { type: "OrderStarted" },
  { type: "OrderAnswered", attemptId: "a", action: "ForceOff", failure: undefined, atMs: 20 },
  { type: "PowerRead", reading: { state: "Off", raw: "Off" }, atMs: 30 },
  { type: "PowerRead", reading: { state: "Off", raw: "Off" }, atMs: 60 },
];

describe("observe", () => {
  it("proves a host off by two readings after the order, and takes that back by any other reading", () => {
    const seen = FENCE.reduce(observe, nothingObserved());
    assert.equal(seen.power.provenAtMs, 60);
    const next = observe(seen, { type: "PowerRead", reading: { state: "On", raw: "On" }, atMs: 90 });
    assert.equal(next.power.provenAtMs, undefined);
  });

  it("changes nothing of what it is given", () => {
    const seen = nothingObserved();
    FENCE.reduce(observe, seen);
    assert.deepEqual(seen, nothingObserved());
  });

  it("comes to the same by events that were written as JSON and read again", () => {
    const read = JSON.parse(JSON.stringify(FENCE)) as RemediationEvent[];
    assert.deepEqual(read.reduce(observe, nothingObserved()), FENCE.reduce(observe, nothingObserved()));
  });

  it("is all that adds to what a session has seen", () => {
    const source = readFileSync(new URL("../../../src/remediator/controller/session.ts", import.meta.url), "utf8");
    assert.deepEqual(source.match(/#seen\b[^;]*?=[^=;][^;]*;/gu), [
      "#seen: Seen = nothingObserved();",
      "#seen = observe(this.#seen, event);",
    ]);
  });
});
