import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assert as assertProperty, nat, property } from "fast-check";
import { compileUnhealthyLimit, judgeUnhealthyLimit } from "../../../../src/detector/machines/decide/threshold.ts";

function judge(spec: { range?: string; max?: number | string }, expected: number, unhealthy: number) {
  const unhealthyLimit = compileUnhealthyLimit({ unhealthyInRange: spec.range, unhealthyLessThanOrEqualTo: spec.max });
  if (typeof unhealthyLimit === "string") throw new Error(unhealthyLimit);
  return judgeUnhealthyLimit(unhealthyLimit, expected, unhealthy);
}

describe("how many machines may be unhealthy", () => {
  it("all machines may be unhealthy by default", () => {
    assert.deepEqual(judge({}, 5, 5).allowed, true);
    assert.equal(judge({}, 5, 2).remaining, 3);
  });

  for (const [max, expected, allowed] of [
    ["40%", 6, 2],
    ["40%", 5, 2],
    ["40%", 4, 1],
    ["40%", 2, 0],
    ["99%", 100, 99],
    ["33%", 3, 0],
    ["100%", 7, 7],
    ["0%", 7, 0],
    [3, 10, 3],
    ["3", 10, 3],
  ] as const) {
    it(`the number of machines that may be unhealthy for ${max} of ${expected} is ${allowed}: shares are rounded down`, () => {
      assert.equal(judge({ max }, expected, allowed).allowed, true);
      assert.equal(judge({ max }, expected, allowed).remaining, 0);
      assert.equal(judge({ max }, expected, allowed + 1).allowed, false);
    });
  }

  it("the number of machines that may be unhealthy never exceeds the share of any number, and no more start than remain", () => {
    assertProperty(
      property(nat(100), nat(10_000), nat(10_000), (percent, expected, unhealthy) => {
        const { allowed, remaining } = judge({ max: `${percent}%` }, expected, unhealthy);
        assert.equal(allowed, unhealthy * 100 <= percent * expected);
        assert.equal(allowed ? remaining >= 0 : remaining === 0, true);
      }),
    );
  });

  it("the unhealthy range has both ends if it is given, whatever the maximum says", () => {
    const at = (unhealthy: number) => judge({ range: "[2-4]", max: 0 }, 10, unhealthy);
    assert.deepEqual(
      [1, 2, 4, 5].map((unhealthy) => at(unhealthy).allowed),
      [false, true, true, false],
    );
    assert.equal(at(3).remaining, 1);
    assert.equal(
      at(5).message,
      "Remediation is not allowed, the number of not started or unhealthy machines does not fall within the range (total: 10, unhealthy: 5, unhealthyRange: [2-4])",
    );
  });

  it("the number of machines that may be unhealthy is never guessed: an invalid value is reported", () => {
    for (const range of ["[4-2]", "2-4", "[a-b]", "[-1-2]"]) {
      assert.equal(
        typeof compileUnhealthyLimit({ unhealthyInRange: range, unhealthyLessThanOrEqualTo: undefined }),
        "string",
      );
    }
    for (const max of ["many", "-1", "101%", "1.5"]) {
      assert.equal(
        typeof compileUnhealthyLimit({ unhealthyInRange: undefined, unhealthyLessThanOrEqualTo: max }),
        "string",
      );
    }
  });
});
