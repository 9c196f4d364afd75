import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { namedTests, readEntries } from "../../lib/page-entries.ts";

// shown-by.test.ts checks for all pages that the named tests exist.

const page = readFileSync(new URL("../../../docs/explanation/threat-model.md", import.meta.url), "utf8");
const numbers = [...page.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
const attacks = readEntries(page.replaceAll(/^- .*(?:\n +.*)*/gm, ""));

describe("docs/explanation/threat-model.md", () => {
  it("docs/explanation/threat-model.md numbers its attacks without a gap, each with a verdict and the test that holds it", () => {
    assert.ok(attacks.length >= 200, `${attacks.length} attacks`);
    assert.deepEqual(
      numbers,
      attacks.map((_, index) => index + 1),
    );
    for (const attack of attacks) {
      assert.match(attack.text, /: \*\*(?:withstood|limited|passes)\*\*\.$/);
      assert.ok(namedTests(attack).length > 0, attack.text);
    }
  });

  it("docs/explanation/threat-model.md lists no attack twice", () => {
    assert.equal(new Set(attacks.map(({ text }) => text)).size, attacks.length);
  });
});
