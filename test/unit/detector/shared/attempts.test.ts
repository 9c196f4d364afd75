import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { REMEDIATION_ATTEMPTS } from "../../../../src/api/names/annotations.ts";
import {
  attemptAllowedAtMs,
  countAttempts,
  DEFAULT_ATTEMPT_BUDGET,
  isHistoryFull,
  mustRecord,
  parseAttemptBudget,
  readAttempts,
  writeAttempts,
} from "../../../../src/detector/shared/model/attempts.ts";
import type { HealthCheckObject } from "../../../../src/detector/nodes/snapshot/health-check.ts";
import type { Remediation } from "../../../../src/detector/shared/model/remediation.ts";
import { readRemediation, trimForHealthCheck } from "../../../../src/detector/shared/model/remediation.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { remediationOf, T0 } from "../nodes/builders.ts";

const DAY_MS = 86_400_000;

/** A health check with this text in its annotation. */
function checkWith(text: string | undefined): HealthCheckObject {
  return {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: {
      name: "check",
      uid: "check-1",
      resourceVersion: "1",
      ...(text !== undefined && { annotations: { [REMEDIATION_ATTEMPTS]: text } }),
    },
    spec: {},
    status: {},
  };
}

/** A BareMetalRemediation in a given state, with the last order that it reports. */
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
  return readRemediation(trimForHealthCheck(raw));
}

describe("the attempt budget", () => {
  it("the attempt budget has a count and a window, which is not longer than attempts are remembered", () => {
    assert.deepEqual(parseAttemptBudget("5/24h"), { max: 5, windowMs: DAY_MS });
    assert.deepEqual(parseAttemptBudget("50/168h"), { max: 50, windowMs: 7 * DAY_MS });
    for (const text of ["", "5", "0/24h", "-1/24h", "51/24h", "5/", "5/0", "5/59s", "5/169h", "5/-1h", "five/24h"]) {
      assert.equal(parseAttemptBudget(text), undefined, text);
    }
  });

  it("the attempt budget allows one more attempt while fewer than the maximum lie in the window, and then when the oldest leaves it", () => {
    const attempts = [1, 2, 3].map((hour) => ({ uid: `u${hour}`, startedMs: T0 + hour * 3_600_000 }));
    assert.equal(attemptAllowedAtMs({ max: 4, windowMs: DAY_MS }, attempts), -Infinity);
    assert.equal(attemptAllowedAtMs({ max: 3, windowMs: DAY_MS }, attempts), T0 + 3_600_000 + DAY_MS);
    assert.equal(attemptAllowedAtMs({ max: 2, windowMs: DAY_MS }, attempts), T0 + 2 * 3_600_000 + DAY_MS);
    assert.equal(attemptAllowedAtMs(DEFAULT_ATTEMPT_BUDGET, []), -Infinity);
  });

  it("the attempt budget counts each remembered attempt and each existing remediation once", () => {
    const remediations = [remediationOf("a", { uid: "new", createdMs: T0 })];
    const remembered = [{ uid: "old", startedMs: T0 - 5_000 }];
    const attempts = countAttempts(remembered, remediations, T0);
    assert.deepEqual(
      attempts.map(({ uid }) => uid),
      ["old", "new"],
    );
    assert.equal(mustRecord(remembered, remediations, attempts), true);
    assert.equal(mustRecord(attempts, remediations, countAttempts(attempts, remediations, T0)), false);
  });

  it("the attempt budget forgets attempts that are older than the longest window", () => {
    const remembered = [
      { uid: "ancient", startedMs: T0 - 8 * DAY_MS },
      { uid: "kept", startedMs: T0 },
    ];
    assert.deepEqual(countAttempts(remembered, [], T0), [{ uid: "kept", startedMs: T0 }]);
    assert.equal(writeAttempts(new Map([["a", remembered]]), new Map(), T0), `{"a":"kept@${toTime(T0)}"}`);
  });

  it("the attempt budget remembers at most fifty, the newest", () => {
    const remembered = Array.from({ length: 80 }, (_, index) => ({
      uid: `u${index}`,
      startedMs: T0 - 100_000 + index,
    }));
    const attempts = countAttempts(remembered, [], T0);
    assert.deepEqual([attempts.length, attempts.at(-1)?.uid], [50, "u79"]);
  });

  const cases: [string, Remediation, number][] = [
    ["a remediation that is under way counts as an attempt, whatever it has done", bareMetal("Unknown", undefined), 1],
    ["a remediation that failed before its first order does not count as an attempt", bareMetal("False", "None"), 0],
    ["a remediation that failed before it began does not count as an attempt", bareMetal("False", undefined), 0],
    [
      "a remediation that only found its host off from an earlier owner does not count as an attempt",
      bareMetal("False", "Inherited"),
      0,
    ],
    [
      "a remediation that is deleted before its first order does not count as an attempt",
      bareMetal("Unknown", "None", toTime(T0)),
      0,
    ],
    ["a remediation that failed after an order counts as an attempt", bareMetal("False", "ForceOff"), 1],
    ["a remediation that is deleted after an order counts as an attempt", bareMetal("Unknown", "On", toTime(T0)), 1],
    [
      "a failed remediation of another vendor counts as an attempt, because it does not report its orders",
      remediationOf("a", { uid: "b", succeeded: "False" }),
      1,
    ],
  ];
  for (const [name, remediation, count] of cases) {
    it(name, () => {
      assert.equal(countAttempts([], [remediation], T0).length, count);
      // Also after it was counted: if an attempt turns out to be free, it no longer counts.
      const remembered = [{ uid: "b", startedMs: T0 }];
      const attempts = countAttempts(remembered, [remediation], T0);
      assert.equal(attempts.length, count);
      assert.equal(mustRecord(remembered, [remediation], attempts), count === 0);
    });
  }
});

describe("the attempts in a health check's annotation", () => {
  const book = (...nodes: [string, ...number[]][]) =>
    new Map(
      nodes.map(([name, ...agoMs]) => [
        name,
        agoMs.map((ms) => ({ uid: `${name}-${ms}`, startedMs: T0 - ms * 1_000 })),
      ]),
    );

  it("the attempts in a health check's annotation are read back as they were written, oldest first", () => {
    const text = writeAttempts(book(["a", 9, 5], ["b", 7]), new Map(), T0);
    assert.deepEqual(readAttempts(checkWith(text)), book(["a", 9, 5], ["b", 7]));
    assert.deepEqual(readAttempts(checkWith(undefined)), new Map());
  });

  it("the attempts in a health check's annotation change for the nodes that are named alone, and go if none is left", () => {
    const text = writeAttempts(book(["a", 9], ["b", 7]), book(["a"], ["c", 1]), T0);
    assert.deepEqual(readAttempts(checkWith(text)), book(["c", 1], ["b", 7]));
    assert.equal(writeAttempts(book(["a", 9]), book(["a"]), T0), undefined);
  });

  it("the attempts in a health check's annotation are read as far as they can be, whatever users have made of them", () => {
    for (const text of ["", "{", "null", "7", "[]", '{"a":7}', '{"a":"x"}', '{"a":"@,x@soon,@2026-01-01T00:00:00Z"}']) {
      assert.deepEqual([...readAttempts(checkWith(text)).values()].flat(), [], text);
    }
    const spoilt = `{"a":"x, kept@${toTime(T0)},","__proto__":"p@${toTime(T0)}"}`;
    assert.deepEqual(readAttempts(checkWith(spoilt)).get("a"), [{ uid: "kept", startedMs: T0 }]);
  });

  it("the attempts in a health check's annotation fit next to other annotations: the oldest are left out, and that is recorded", () => {
    const many = new Map(
      Array.from({ length: 5_000 }, (_, index) => [
        `worker-${index}.rack.example`,
        [{ uid: crypto.randomUUID(), startedMs: T0 - index * 1_000 }],
      ]),
    );
    const text = writeAttempts(many, new Map(), T0) ?? "";
    assert.ok(text.length <= 160 * 1024 && text.length > 150 * 1024, `${text.length} characters`);
    const read = readAttempts(checkWith(text));
    assert.ok(read.has("worker-0.rack.example") && !read.has("worker-4999.rack.example"));
    assert.equal(isHistoryFull(checkWith(text)), true);
    assert.equal(isHistoryFull(checkWith(writeAttempts(book(["a", 1]), new Map(), T0))), false);
  });
});
