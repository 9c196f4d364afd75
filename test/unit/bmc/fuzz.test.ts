import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { fuzzProperty, inputsFor } from "../../../hack/fuzz/property.ts";
import { tryInput } from "../../../hack/fuzz/target.ts";
import { FUZZ_TARGETS } from "../../../hack/fuzz/targets.ts";
import { BmcError } from "../../../src/bmc/interface/errors.ts";

// A short fuzzing run; the bench runs longer. SEED=n repeats a run.

const RUNS = 1_500;
const seed = Number(process.env["SEED"] ?? Math.trunc(Math.random() * 2 ** 31));

for (const target of FUZZ_TARGETS) {
  test(`no input makes the parser of ${target.name} fail (SEED=${seed})`, () => {
    fc.assert(fuzzProperty(target), { numRuns: RUNS, seed });
  });

  test(`the parser of ${target.name} takes its well-formed inputs, and the inputs bred from them differ`, () => {
    for (const input of target.seeds) tryInput(target, input);
    const bred = fc.sample(inputsFor(target), { numRuns: 200, seed });
    assert.ok(new Set(bred.map((input) => input.toString("latin1"))).size > 100);
  });
}

test("a defect is distinguished from a refusal", () => {
  const failing =
    (run: () => void): (() => void) =>
    () =>
      tryInput({ name: "x", seeds: [], run }, Buffer.alloc(0));
  assert.doesNotThrow(
    failing(() => {
      throw new BmcError("BadResponse", "refused");
    }),
  );
  assert.throws(
    failing(() => {
      throw new RangeError("out of bounds");
    }),
    RangeError,
  );
  const prototype = Object.prototype as unknown as Record<string, unknown>;
  try {
    assert.throws(
      failing(() => {
        prototype["PowerState"] = "Off";
      }),
      /every object a PowerState/,
    );
  } finally {
    delete prototype["PowerState"];
  }
});
