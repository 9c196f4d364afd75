import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { MUTANTS } from "../../../hack/mutants/mutants.ts";
import { INVARIANTS } from "../../sim/invariants/all.ts";

// That the tests named in the last column are there is checked for all documents (test/unit/docs).

interface Rule {
  no: string;
  says: string;
  mutants: string[];
  scenarios: string[];
}

const document = readFileSync(new URL("../../../docs/safety-rules.md", import.meta.url), "utf8");

const rules: readonly Rule[] = document
  .split("\n")
  .filter((line) => /^\| [FSL]\d+ /.test(line))
  .map((line) => {
    const [no = "", says = "", mutants = "", shownBy = ""] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return {
      no,
      says,
      mutants: [...mutants.matchAll(/`([^`]+)`/g)].flatMap(([, id]) => id ?? []),
      scenarios: [...shownBy.matchAll(/`(sim\/[^`]+\.test\.ts)` \S/g)].flatMap(([, file]) => file ?? []),
    };
  });

describe("each rule of docs/safety-rules.md", () => {
  const known = new Set(MUTANTS.map(({ id }) => id));
  for (const { no, says, mutants, scenarios } of rules) {
    it(`has a mutant and a scenario: ${no}, ${says}`, () => {
      assert.ok(mutants.length > 0, "no mutant breaks it");
      for (const id of mutants) assert.ok(known.has(id), `there is no mutant ${id}`);
      assert.ok(scenarios.length > 0, "no scenario of the simulation shows it");
    });
  }
});

describe("docs/safety-rules.md", () => {
  const numbered = (letter: string): Rule[] => rules.filter(({ no }) => no.startsWith(letter));

  it("has a row for each invariant of the simulation, and for its end", () => {
    const invariants = INVARIANTS.map(({ name, says }) => `${name} ${says}`);
    assert.deepEqual(
      numbered("S").map(({ no, says }) => `${no} ${says}`),
      invariants.toSorted((a, b) => Number(/\d+/.exec(a)?.[0]) - Number(/\d+/.exec(b)?.[0])),
    );
    assert.equal(numbered("L").length, 1);
  });

  it("counts the rules of a fence without a gap", () => {
    const numbers = numbered("F").map(({ no }) => Number(no.slice(1)));
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
    assert.ok(numbers.length > 30);
  });
});
