import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Attempt } from "../../../src/remediator/state.ts";
import { formatAttempt, isUnderWay, mayHaveTurnedOff, parseState, STATE_NAMES } from "../../../src/remediator/state.ts";
import { attempt, NOW } from "./snapshots.ts";

const STORED = formatAttempt(attempt({ action: "ForceOff", offConfirmedAtMs: NOW.epochMs }));

describe("a stored state", () => {
  it("is read as it was written, and begins where nothing is stored", () => {
    assert.deepEqual(parseState({ phase: "Releasing", attempt: STORED }), {
      name: "Releasing",
      attempt: attempt({ action: "ForceOff", offConfirmedAtMs: NOW.epochMs }),
    });
    assert.deepEqual(parseState(undefined), { name: "Resolving", attempt: undefined });
    assert.deepEqual(parseState({ phase: "Failed" }), { name: "Failed" });
  });

  it("has no time of a proof where none was made", () => {
    assert.equal("offConfirmedAt" in formatAttempt(attempt()), false);
  });

  for (const [what, status, message] of [
    ["has a phase that this version does not know", { phase: "Melting" }, /"Melting" is not a state of this version/u],
    ["lacks its attempt", { phase: "Releasing" }, /is Releasing, but status\.attempt is missing/u],
    ["is an undo without its reason", { phase: "Undoing", attempt: STORED }, /lacks attempt or outcome/u],
    [
      "is an undo without its attempt",
      { phase: "Undoing", outcome: { verdict: "Failed", reason: "PowerOnTimeout", message: "" } },
      /lacks attempt or outcome/u,
    ],
    [
      "has a time that is none",
      { phase: "Verifying", attempt: { ...STORED, deadline: "soon" } },
      /status\.attempt\.deadline is not a time/u,
    ],
  ] as const) {
    it(`that ${what} is not taken for another: it is said what is wrong`, () => {
      assert.throws(() => parseState(status), message);
    });
  }

  it("has a host under way from the look before the power-off until the verdict", () => {
    const busy = STATE_NAMES.filter((phase) => isUnderWay({ phase, attempt: STORED }, NOW.epochMs));
    const idle = STATE_NAMES.filter((phase) => !busy.includes(phase));
    assert.deepEqual(idle.toSorted(), ["Failed", "Resolving", "Succeeded"]);
    assert.equal(isUnderWay(undefined, NOW.epochMs), false);
  });
});

describe("a host is owed an On", () => {
  it("by whoever may have turned it off, until it has been read On after that", () => {
    const owed = (action: Attempt["action"], done: boolean): boolean => mayHaveTurnedOff(attempt({ action, done }));
    assert.deepEqual([owed("None", false), owed("Inherited", false)], [false, true]);
    assert.deepEqual([owed("ForceOff", false), owed("ForceOff", true)], [true, true]);
    assert.deepEqual([owed("On", false), owed("On", true)], [true, false]);
  });
});

describe("a remediation that takes back what it did", () => {
  const undoing = (action: Attempt["action"], overdueMs: number): boolean => {
    const deadlineMs = NOW.epochMs - overdueMs;
    return isUnderWay({ phase: "Undoing", attempt: formatAttempt(attempt({ action, deadlineMs })) }, NOW.epochMs);
  };

  it("counts among those under way for as long as that may take, and no longer: its BMC may never answer again", () => {
    assert.deepEqual([undoing("ForceOff", -1_000), undoing("ForceOff", 1_000)], [true, false]);
  });

  it("does not where it has begun nothing", () => assert.equal(undoing("None", -1_000), false));
});
