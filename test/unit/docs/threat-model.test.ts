import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

// That the tests which hold the verdicts are there is checked for all documents (shown-by.test.ts).

const document = readFileSync(new URL("../../../docs/explanation/threat-model.md", import.meta.url), "utf8");
const attacks = document
  .split("\n")
  .filter((line) => /^\| \d+ \|/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()));

describe("docs/explanation/threat-model.md", () => {
  it("numbers its attacks without a gap, each with a verdict and the test that holds it", () => {
    assert.ok(attacks.length >= 80, `${attacks.length} attacks`);
    for (const [index, [, no, attack = "", verdict = "", shownBy = ""]] of attacks.entries()) {
      assert.equal(no, String(index + 1));
      assert.match(verdict, /^(withstood|limited|passes)$/, attack);
      assert.match(shownBy, /^`[^`]+\.test\.ts` \S/, attack);
    }
  });

  it("tells no attack twice", () => {
    assert.equal(new Set(attacks.map((cells) => cells[2])).size, attacks.length);
  });
});
