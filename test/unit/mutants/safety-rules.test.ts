import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { MUTANTS } from "../../../hack/mutants/named/all.ts";
import { INVARIANTS } from "../../sim/invariants/all.ts";

// That the tests named in the last column are there is checked for all documents (test/unit/docs).

const FENCE_HEADING = ["rule", "mutants", "shown by"];
const INVARIANT_HEADING = ["invariant", ...FENCE_HEADING];

interface Rule {
  says: string;
  mutants: string[];
  scenarios: string[];
}

const document = readFileSync(new URL("../../../docs/explanation/safety-rules.md", import.meta.url), "utf8");

const tables = document
  .split("\n\n")
  .filter((block) => block.startsWith("|"))
  .map((block) => {
    const [heading = [], , ...rows] = block.trim().split("\n").map(readCells);
    return { heading, rows };
  });

const fenceRows = tables.filter(({ heading }) => heading.length === FENCE_HEADING.length).flatMap(({ rows }) => rows);
const invariantRows = tables.filter(({ heading }) => heading[0] === "invariant").flatMap(({ rows }) => rows);

function readCells(row: string): string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function readRule([says = "", mutants = "", shownBy = ""]: string[]): Rule {
  return {
    says,
    mutants: [...mutants.matchAll(/`([^`]+)`/g)].flatMap(([, id]) => id ?? []),
    scenarios: [...shownBy.matchAll(/`(sim\/[^`]+\.test\.ts)` \S/g)].flatMap(([, file]) => file ?? []),
  };
}

function repeated(texts: readonly string[]): string[] {
  return texts.filter((text, index) => texts.indexOf(text) !== index);
}

describe("docs/explanation/safety-rules.md", () => {
  it("has tables of two kinds alone, and in each row a cell for each heading", () => {
    for (const { heading, rows } of tables) {
      assert.deepEqual(heading, heading[0] === "invariant" ? INVARIANT_HEADING : FENCE_HEADING);
      for (const row of rows)
        assert.equal(row.length, heading.length, `a rule has a name, no number: ${row.join(" | ")}`);
    }
    assert.ok(fenceRows.length > 30);
  });

  it("has each rule of a fence once, under the name of the mutant that it lists first", () => {
    const rules = fenceRows.map(readRule);
    assert.deepEqual(repeated(rules.map(({ says }) => says)), []);
    assert.deepEqual(repeated(rules.map(({ mutants }) => mutants[0] ?? "")), []);
  });

  it("has a row for each invariant of the simulation, and one for the end of a run", () => {
    const documented = invariantRows.map(([name = "", says = ""]) => `${name} ${says}`);
    const invariants = INVARIANTS.map(({ name, says }) => `${name} ${says}`);
    assert.deepEqual(
      documented.filter((row) => row.startsWith("S")),
      invariants.toSorted((a, b) => Number(/\d+/.exec(a)?.[0]) - Number(/\d+/.exec(b)?.[0])),
    );
    assert.equal(documented.filter((row) => row.startsWith("L")).length, 1);
  });
});

describe("each rule of docs/explanation/safety-rules.md", () => {
  const known = new Set(MUTANTS.map(({ id }) => id));
  for (const { says, mutants, scenarios } of [...fenceRows, ...invariantRows.map((cells) => cells.slice(1))].map(
    readRule,
  )) {
    it(`has a mutant and a scenario: ${says}`, () => {
      assert.ok(mutants.length > 0, "no mutant breaks it");
      for (const id of mutants) assert.ok(known.has(id), `there is no mutant ${id}`);
      assert.ok(scenarios.length > 0, "no scenario of the simulation shows it");
    });
  }
});
