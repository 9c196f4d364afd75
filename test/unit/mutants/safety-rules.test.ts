import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { MUTANTS } from "../../../hack/mutants/named/all.ts";
import { BEYOND_SAFETY } from "../../../hack/mutants/named/beyond-safety.ts";
import { namedTests, readEntries } from "../../lib/page-entries.ts";
import type { Entry } from "../../lib/page-entries.ts";
import { INVARIANTS } from "../../sim/invariants/all.ts";

// test/unit/docs checks for all documents that the tests in nested items exist.

interface Rule {
  /** The name of a rule that the simulation checks: S or L and a number. */
  invariant?: string;
  says: string;
  mutants: string[];
  scenarios: string[];
}

const document = readFileSync(new URL("../../../docs/explanation/safety-rules.md", import.meta.url), "utf8");
const rules = readEntries(document).map(readRule);
const fenceRules = rules.filter(({ invariant }) => invariant === undefined);
const invariants = rules.filter(({ invariant }) => invariant !== undefined);

function readRule(entry: Entry): Rule {
  const [, invariant, judged, kept, mutants] =
    /^\*\*(?:([SL]\d+)\*\*: (.+?)\.|([^*]+)\.\*\*) Mutants: ((?:`[^`]+`(?:, |\.$))+)/.exec(entry.text) ?? [];
  assert.ok(mutants !== undefined, `neither a rule nor an invariant with its mutants: ${entry.text}`);
  return {
    ...(invariant !== undefined && { invariant }),
    says: judged ?? kept ?? "",
    mutants: [...mutants.matchAll(/`([^`]+)`/g)].flatMap(([, id]) => id ?? []),
    scenarios: namedTests(entry).flatMap(({ file }) => (file.startsWith("sim/") ? [file] : [])),
  };
}

function repeated(texts: readonly string[]): string[] {
  return texts.filter((text, index) => texts.indexOf(text) !== index);
}

describe("docs/explanation/safety-rules.md", () => {
  it("docs/explanation/safety-rules.md has each rule of a fence once, under the name of the mutant that it lists first", () => {
    assert.ok(fenceRules.length > 30);
    assert.deepEqual(repeated(fenceRules.map(({ says }) => says)), []);
    assert.deepEqual(repeated(fenceRules.map(({ mutants }) => mutants[0] ?? "")), []);
  });

  it("docs/explanation/safety-rules.md has an entry for each invariant of the simulation, and one for the end of a run", () => {
    const documented = invariants.map(({ invariant, says }) => `${invariant} ${says}`);
    const judged = INVARIANTS.map(({ name, says }) => `${name} ${says}`);
    assert.deepEqual(
      documented.filter((rule) => rule.startsWith("S")),
      judged.toSorted((a, b) => Number(/\d+/.exec(a)?.[0]) - Number(/\d+/.exec(b)?.[0])),
    );
    assert.equal(documented.filter((rule) => rule.startsWith("L")).length, 1);
  });
});

describe("the named mutants", () => {
  const ofRules = new Set(rules.flatMap(({ mutants }) => mutants));
  const others = BEYOND_SAFETY.flatMap(({ mutants }) => mutants);

  it("every named mutant is listed with the safety rule that it breaks, or with what it guards instead", () => {
    const listed = new Set([...ofRules, ...others]);
    assert.deepEqual(
      MUTANTS.map(({ id }) => id).filter((id) => !listed.has(id)),
      [],
    );
  });

  it("no named mutant that guards something else than safety is unknown, listed twice, or listed with a rule", () => {
    const known = new Set(MUTANTS.map(({ id }) => id));
    assert.deepEqual(repeated(others), []);
    assert.deepEqual(
      others.filter((id) => !known.has(id) || ofRules.has(id)),
      [],
    );
  });
});

describe("each rule of docs/explanation/safety-rules.md", () => {
  const known = new Set(MUTANTS.map(({ id }) => id));
  for (const { says, mutants, scenarios } of rules) {
    it(`each rule of docs/explanation/safety-rules.md has a mutant and a scenario: ${says}`, () => {
      assert.ok(mutants.length > 0, "no mutant breaks it");
      for (const id of mutants) assert.ok(known.has(id), `there is no mutant ${id}`);
      assert.ok(scenarios.length > 0, "no scenario of the simulation shows it");
    });
  }
});
