import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { namedTests, readEntries } from "../../lib/page-entries.ts";
import type { Entry } from "../../lib/page-entries.ts";

// Pages name the test that shows a behavior, in nested items of a list; this test checks that those tests exist.

const DOCUMENTS = new URL("../../../docs/", import.meta.url);
const TESTS = new URL("../../", import.meta.url);
/** The claim about ironfence in an entry, after the behavior of another system. */
const CLAIM = / (?:ironfence|Here): /;

function entriesOf(document: string): Entry[] {
  return readEntries(readFileSync(new URL(document, DOCUMENTS), "utf8"));
}

describe("a test that a page names", () => {
  const documents = globSync("**/*.md", { cwd: fileURLToPath(DOCUMENTS) }).filter((name) =>
    entriesOf(name).some((entry) => namedTests(entry).length > 0),
  );

  it("a test that a page names is looked for on every page", () => {
    assert.ok(documents.includes("evidence/nhc-compatibility.md"), documents.join(", "));
    assert.ok(entriesOf("evidence/nhc-compatibility.md").flatMap(namedTests).length > 100);
  });

  for (const document of documents) {
    it(`a test that a page names exists, and each comparison with another system names one, in ${document}`, () => {
      for (const entry of entriesOf(document)) {
        const tests = namedTests(entry);
        assert.ok(tests.length > 0 || !CLAIM.test(entry.text), `no test shows: ${entry.text}`);
        for (const { file, name } of tests) {
          const url = new URL(file, TESTS);
          assert.ok(existsSync(url), `${entry.text}: ${file} does not exist`);
          // The names of vendors' trees are in a table next to their test.
          const table = new URL(file.replace(/\.test\.ts$/, ".ts"), TESTS);
          const sources = [url, table].filter((source) => existsSync(source));
          const source = sources.map((path) => readFileSync(path, "utf8")).join("\n");
          // The name of a template may be given without the value at its end.
          const ways = [`"${name}"`, `\`${name}\``, `\`${name} (`, `\`${name}: $`];
          const isThere = ways.some((text) => source.includes(text));
          assert.ok(isThere, `${entry.text}: ${file} has no test "${name}"`);
        }
      }
    });
  }
});
