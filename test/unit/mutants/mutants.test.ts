import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { MUTANTS } from "../../../hack/mutants/named/all.ts";
import { editOf } from "../../../hack/mutants/named/mutant.ts";
import type { Mutant } from "../../../hack/mutants/named/mutant.ts";
import { SourceTexts } from "../../../hack/mutants/source-texts.ts";

const ROOT = new URL("../../../", import.meta.url);

describe("the mutants of our own source", () => {
  const texts = SourceTexts.read();
  for (const mutant of MUTANTS) {
    it(`the mutant ${mutant.id} can be made of the present source, and the tests that it names exist`, () => {
      editOf(mutant, texts);
      assert.ok(mutant.killers.length > 0);
      for (const file of mutant.killers) assert.ok(existsSync(new URL(file, ROOT)), file);
    });
  }

  it("the mutants of our own source are many, each with a name of its own", () => {
    assert.ok(MUTANTS.length >= 40);
    assert.equal(new Set(MUTANTS.map(({ id }) => id)).size, MUTANTS.length);
  });
});

describe("a mutant's text", () => {
  const MUTANT: Mutant = { id: "m", rule: "", file: "src/a.ts", find: "f(a, b)", replace: "b", killers: [] };
  const textsOf = (sources: Record<string, string>): SourceTexts => new SourceTexts(new Map(Object.entries(sources)));

  it("a mutant's text is found in the file to which its code has moved", () => {
    const edit = editOf(MUTANT, textsOf({ "src/b.ts": "x; f(a, b);" }));
    assert.deepEqual(edit, { file: "src/b.ts", start: 3, end: 10, replacement: "b" });
  });

  it("a mutant's text is found when a formatter has broken its line, or joined it", () => {
    const broken = "f(\n  a,\n  b,\n)";
    assert.equal(editOf(MUTANT, textsOf({ "src/a.ts": broken })).end, broken.length);
    const joined = editOf({ ...MUTANT, find: "f(\n  a,\n  b,\n);\n" }, textsOf({ "src/a.ts": "f(a, b);" }));
    assert.equal(joined.end, "f(a, b);".length);
  });

  it("a mutant's text includes a comma at its end if there is one", () => {
    const mutant = { ...MUTANT, find: "sent: true," };
    assert.equal(editOf(mutant, textsOf({ "src/a.ts": "{ sent: true, done }" })).end, "{ sent: true,".length);
    assert.equal(editOf(mutant, textsOf({ "src/a.ts": "{ sent: true }" })).end, "{ sent: true".length);
    assert.throws(() => editOf(mutant, textsOf({ "src/a.ts": "{ sent: true && done }" })), /occurs 0 times/);
  });

  it("a mutant's text is taken from its own file when several files have it", () => {
    const texts = textsOf({ "src/a.ts": "f(a, b)", "src/b.ts": "f(a, b)" });
    assert.equal(editOf({ ...MUTANT, file: "src/b.ts" }, texts).file, "src/b.ts");
  });

  it("a mutant is refused if its text is missing, occurs twice, or is not changed", () => {
    assert.throws(() => editOf(MUTANT, textsOf({ "src/a.ts": "f(b, a)" })), /occurs 0 times/);
    assert.throws(() => editOf(MUTANT, textsOf({ "src/a.ts": "f(a, b); f(a, b)" })), /occurs 2 times/);
    assert.throws(
      () => editOf({ ...MUTANT, replace: MUTANT.find }, textsOf({ "src/a.ts": "f(a, b)" })),
      /changes nothing/,
    );
  });
});
