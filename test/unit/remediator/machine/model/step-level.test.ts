import assert from "node:assert/strict";
import { test } from "node:test";
import { stepLevel } from "../../../../../src/remediator/machine/model/decision/step-level.ts";

test("a node that was not fenced and a wrong host are errors, waits and deletions warnings, a good course is neither", () => {
  const cases = [
    ["Failed", "Warning", "BMCAuthenticationFailed", "error"],
    ["Undoing", "Warning", "WrongHost", "error"],
    ["Failed", "Warning", "RemediationDeleted", "warn"],
    ["Resolving", "Warning", "NoTarget", "warn"],
    ["Resolving", "Normal", "WaitingForTurn", "warn"],
    ["Resolving", "Warning", "Paused", "warn"],
    ["PoweringOff", "Normal", "PowerOffSent", "info"],
    ["Succeeded", "Normal", "Recovered", "info"],
  ] as const;
  for (const [to, type, reason, level] of cases) assert.equal(stepLevel(to, { type, reason }), level, reason);
});
