import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { REMEDIATION_ATTEMPTS } from "../../../src/api/annotations.ts";
import {
  attemptAllowedAtMs,
  attemptsToRecord,
  countAttempts,
  DEFAULT_ATTEMPT_BUDGET,
  parseAttemptBudget,
} from "../../../src/detector/attempts.ts";
import type { Remediation } from "../../../src/detector/remediation.ts";
import { readRemediation, trimRemediation } from "../../../src/detector/remediation.ts";
import { toTime } from "../../../src/runtime/time.ts";
import { nodeOf, remediationOf, remembering, T0 } from "./world.ts";

const DAY_MS = 86_400_000;
const NODE = nodeOf("a", "Unknown", T0);
const withText = (text: string) => ({
  ...NODE,
  metadata: { ...NODE.metadata, annotations: { [REMEDIATION_ATTEMPTS]: text } },
});

/** One of ours in a given state; its remediator tells what it ordered. */
function bareMetal(succeeded: string, action: string | undefined, deletionTimestamp?: string): Remediation {
  const raw = {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: {
      name: "a",
      namespace: "fencing",
      uid: "b",
      resourceVersion: "1",
      creationTimestamp: toTime(T0),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    status: {
      conditions: [{ type: "Succeeded", status: succeeded }],
      ...(action !== undefined && { attempt: { action } }),
    },
  };
  return readRemediation(trimRemediation(raw));
}

describe("attempt budget", () => {
  it("is read from a count and a window, within what a node remembers", () => {
    assert.deepEqual(parseAttemptBudget("5/24h"), { max: 5, windowMs: DAY_MS });
    assert.deepEqual(parseAttemptBudget("50/168h"), { max: 50, windowMs: 7 * DAY_MS });
    for (const text of ["", "5", "0/24h", "-1/24h", "51/24h", "5/", "5/0", "5/59s", "5/169h", "5/-1h", "five/24h"]) {
      assert.equal(parseAttemptBudget(text), undefined, text);
    }
  });

  it("allows one more attempt while fewer than the maximum lie in the window, and then when the oldest leaves it", () => {
    const attempts = [1, 2, 3].map((hour) => ({ uid: `u${hour}`, startedMs: T0 + hour * 3_600_000 }));
    assert.equal(attemptAllowedAtMs({ max: 4, windowMs: DAY_MS }, attempts), -Infinity);
    assert.equal(attemptAllowedAtMs({ max: 3, windowMs: DAY_MS }, attempts), T0 + 3_600_000 + DAY_MS);
    assert.equal(attemptAllowedAtMs({ max: 2, windowMs: DAY_MS }, attempts), T0 + 2 * 3_600_000 + DAY_MS);
    assert.equal(attemptAllowedAtMs(DEFAULT_ATTEMPT_BUDGET, []), -Infinity);
  });

  it("counts what the node remembers and what is there, each once", () => {
    const remediations = [remediationOf("a", { uid: "new", createdMs: T0 })];
    const node = withText(`old@${toTime(T0 - 5_000)}`);
    const attempts = countAttempts(node, remediations, T0);
    assert.deepEqual(
      attempts.map(({ uid }) => uid),
      ["old", "new"],
    );
    const text = attemptsToRecord(node, remediations, attempts);
    assert.equal(text, `old@${toTime(T0 - 5_000)},new@${toTime(T0)}`);
    const recorded = withText(text);
    assert.equal(attemptsToRecord(recorded, remediations, countAttempts(recorded, remediations, T0)), undefined);
  });

  it("forgets what is older than any window, and reads what people have spoilt as far as it can", () => {
    const node = withText(`ancient@${toTime(T0 - 8 * DAY_MS)},,x,@,y@soon, kept@${toTime(T0)}`);
    assert.deepEqual(
      countAttempts(node, [], T0).map(({ uid }) => uid.trim()),
      ["kept"],
    );
  });

  it("remembers at most fifty, the newest", () => {
    const text = Array.from({ length: 80 }, (_, index) => `u${index}@${toTime(T0 - 100_000 + index * 1_000)}`).join(
      ",",
    );
    const attempts = countAttempts(withText(text), [], T0);
    assert.deepEqual([attempts.length, attempts.at(-1)?.uid], [50, "u79"]);
  });

  const cases: [string, Remediation, number][] = [
    ["one under way counts, whatever it has done", bareMetal("Unknown", undefined), 1],
    ["one that failed before its first order is free", bareMetal("False", "None"), 0],
    ["so is one that failed before it began", bareMetal("False", undefined), 0],
    ["so is one that found the host off from an earlier owner", bareMetal("False", "Inherited"), 0],
    ["so is one that is deleted before its first order", bareMetal("Unknown", "None", toTime(T0)), 0],
    ["one that failed after an order counts", bareMetal("False", "ForceOff"), 1],
    ["so does one that is deleted after an order", bareMetal("Unknown", "On", toTime(T0)), 1],
    ["another vendor's counts, since it does not tell", remediationOf("a", { uid: "b", succeeded: "False" }), 1],
  ];
  for (const [name, remediation, count] of cases) {
    it(name, () => {
      assert.equal(countAttempts(NODE, [remediation], T0).length, count);
      // Also once it was counted: what turns out to be free is given back.
      const node = withText(`b@${toTime(T0)}`);
      assert.equal(countAttempts(node, [remediation], T0).length, count);
      assert.equal(
        attemptsToRecord(node, [remediation], countAttempts(node, [remediation], T0)),
        count === 0 ? "" : undefined,
      );
    });
  }

  it("stands on the node, so that it is there after the remediation is not", () => {
    const node = remembering(NODE, [remediationOf("a")]);
    assert.equal(countAttempts(node, [], T0 + 1_000).length, 1);
  });
});
