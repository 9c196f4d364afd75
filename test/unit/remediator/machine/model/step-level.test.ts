import assert from "node:assert/strict";
import { test } from "node:test";
import { stepLevel } from "../../../../../src/remediator/machine/model/decision/step-level.ts";

test("the log reports an unfenced node and a wrong host as errors, waits and deletions as warnings, and other steps as neither", () => {
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
