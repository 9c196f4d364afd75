import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediationStatus } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Attempt } from "../../../../../src/remediator/machine/model/decision/state.ts";
import {
  formatAttempt,
  isUnderWay,
  mayHaveTurnedOff,
  slotOf,
  parseState,
  STATE_NAMES,
} from "../../../../../src/remediator/machine/model/decision/state.ts";
import { attempt, NOW } from "../snapshots.ts";

const STORED = formatAttempt(attempt({ action: "ForceOff", offConfirmedAtMs: NOW.epochMs }));

describe("a stored state", () => {
  it("a stored state is read as it was written, and begins if nothing is stored", () => {
    assert.deepEqual(parseState({ phase: "Releasing", attempt: STORED }), {
      name: "Releasing",
      attempt: attempt({ action: "ForceOff", offConfirmedAtMs: NOW.epochMs }),
    });
    assert.deepEqual(parseState(undefined), { name: "Resolving", attempt: undefined });
    assert.deepEqual(parseState({ phase: "Failed" }), { name: "Failed" });
  });

  it("a stored state has no time of a proof if none was made", () => {
    assert.equal("offConfirmedAt" in formatAttempt(attempt()), false);
  });

  it("a stored state of version 0.1.0 has an id whose taint has no ownership taint", () => {
    const { secondTaint, ...released } = STORED;
    const read = parseState({ phase: "Releasing", attempt: released });
    assert.equal(secondTaint, true);
    assert.equal("attempt" in read && read.attempt?.secondTaint, false);
    assert.deepEqual("attempt" in read && read.attempt && formatAttempt(read.attempt), released);
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
      "has a time that is not valid",
      { phase: "Verifying", attempt: { ...STORED, deadline: "soon" } },
      /status\.attempt\.deadline is not a time/u,
    ],
    [
      "is of a later version",
      { phase: "Verifying", attempt: STORED, stateVersion: 2 },
      /status\.stateVersion is 2, and this agent knows 1/u,
    ],
    [
      "has an order that this version does not know",
      { phase: "PoweringOff", attempt: { ...STORED, action: "Cycle" as "On" } },
      /status\.attempt\.action is not of this version/u,
    ],
  ] as const) {
    it(`a stored state that ${what} is refused, and the message shows what is wrong`, () => {
      const state = parseState(status);
      assert.equal(state.name, "Unknown");
      assert.match(state.why, message);
    });
  }

  it("a stored state of another version has its attempt only if the attempt can be read", () => {
    const attemptOf = (status: BareMetalRemediationStatus): unknown => {
      const state = parseState(status);
      return state.name === "Unknown" ? state.attempt : "known";
    };
    assert.equal((attemptOf({ phase: "Melting", attempt: STORED }) as Attempt).action, "ForceOff");
    assert.equal(attemptOf({ phase: "Melting", attempt: { ...STORED, action: "Cycle" as "On" } }), undefined);
    assert.equal(attemptOf({ phase: "Melting", attempt: { ...STORED, deadline: "soon" } }), undefined);
  });

  it("a stored state has a host under way from the read before the power-off until the verdict", () => {
    const busy = STATE_NAMES.filter((phase) => isUnderWay({ phase, attempt: STORED }, NOW.epochMs));
    const idle = STATE_NAMES.filter((phase) => !busy.includes(phase));
    assert.deepEqual(idle.toSorted(), ["Failed", "Resolving", "Succeeded"]);
    assert.equal(isUnderWay(undefined, NOW.epochMs), false);
  });
});

describe("a slot of the limit on concurrent hosts", () => {
  const DUE = formatAttempt(attempt({ action: "ForceOff", deadlineMs: NOW.epochMs + 1_000 }));
  const waiting = (reason: string, overdueMs = -1_000): string =>
    slotOf(
      {
        phase: "Releasing",
        attempt: formatAttempt(attempt({ action: "ForceOff", deadlineMs: NOW.epochMs - overdueMs })),
        conditions: [
          { type: "Processing", status: "True", reason, message: "", lastTransitionTime: new Date(0).toISOString() },
        ],
      },
      NOW.epochMs,
    );

  it("a slot of the limit on concurrent hosts is held from the read before the power-off until the host reads On", () => {
    const held = STATE_NAMES.filter((phase) => slotOf({ phase, attempt: DUE }, NOW.epochMs) === "Held");
    const states = ["PoweringOff", "PoweringOn", "Provisioning", "Releasing", "Undoing", "Verifying"];
    assert.deepEqual(held.toSorted(), states);
    const on = formatAttempt(attempt({ action: "On", done: true, deadlineMs: NOW.epochMs + 1_000 }));
    assert.equal(slotOf({ phase: "Undoing", attempt: on }, NOW.epochMs), "None");
  });

  it("a slot of the limit on concurrent hosts lapses if it waits for a cluster or an API, or is past its deadline, and not while an operator holds it", () => {
    assert.deepEqual(
      [waiting("ClusterUnreachable"), waiting("ApiFailing"), waiting("BMCBusy", 1), waiting("BMCBusy")],
      ["Lapsing", "Lapsing", "Lapsing", "Held"],
    );
    assert.equal(waiting("Maintenance", 90_000), "Held");
  });
});

describe("a host is owed an On", () => {
  it("a remediation that may have turned a host off owes it an On until it has been read On after that", () => {
    const owed = (action: Attempt["action"], done: boolean): boolean => mayHaveTurnedOff(attempt({ action, done }));
    assert.deepEqual([owed("None", false), owed("Inherited", false)], [false, true]);
    assert.deepEqual([owed("ForceOff", false), owed("ForceOff", true)], [true, true]);
    assert.deepEqual([owed("On", false), owed("On", true)], [true, false]);
  });
});

describe("a remediation that undoes what it did", () => {
  const undoing = (action: Attempt["action"], overdueMs: number): boolean => {
    const deadlineMs = NOW.epochMs - overdueMs;
    return isUnderWay({ phase: "Undoing", attempt: formatAttempt(attempt({ action, deadlineMs })) }, NOW.epochMs);
  };

  it("a remediation that undoes what it did counts among those under way for as long as that may take, and no longer: its BMC may never answer again", () => {
    assert.deepEqual([undoing("ForceOff", -1_000), undoing("ForceOff", 1_000)], [true, false]);
  });

  it("a remediation that undoes what it did does not count among those under way if it has begun nothing", () =>
    assert.equal(undoing("None", -1_000), false));
});
