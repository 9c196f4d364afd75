import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { MUTANTS } from "../../../hack/mutants/mutants.ts";
import { mutate } from "../../../hack/mutants/workshop.ts";

const ROOT = new URL("../../../", import.meta.url);

describe("the mutants of our own source", () => {
  for (const mutant of MUTANTS) {
    it(`${mutant.id} can be made of the code as it is, and names its tests`, () => {
      const source = readFileSync(new URL(mutant.file, ROOT), "utf8");
      assert.notEqual(mutate(source, mutant), source);
      assert.ok(mutant.killers.length > 0);
      for (const file of mutant.killers) assert.ok(existsSync(new URL(file, ROOT)), file);
    });
  }

  it("are many, each with a name of its own", () => {
    assert.ok(MUTANTS.length >= 40);
    assert.equal(new Set(MUTANTS.map(({ id }) => id)).size, MUTANTS.length);
  });

  it("are refused where their text is gone, stands twice, or is not changed", () => {
    const mutant = { id: "m", rule: "", file: "f", find: "a", replace: "b", killers: [] };
    assert.throws(() => mutate("c", mutant), /stands 0 times/);
    assert.throws(() => mutate("aa", mutant), /stands 2 times/);
    assert.throws(() => mutate("a", { ...mutant, replace: "a" }), /changes nothing/);
  });
});
