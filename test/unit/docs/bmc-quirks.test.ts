import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { namedTests, readEntries } from "../../lib/page-entries.ts";

// shown-by.test.ts checks for all pages that the named tests exist.

const ENTRIES_MIN = 95;
const page = readFileSync(new URL("../../../docs/reference/bmc-quirks.md", import.meta.url), "utf8");
const quirks = page
  .split(/^## /m)
  .slice(1)
  .flatMap((section) => {
    const vendor = section.split("\n", 1)[0] ?? "";
    return readEntries(section).map((entry) => ({ vendor, entry }));
  });

describe("docs/reference/bmc-quirks.md", () => {
  it("docs/reference/bmc-quirks.md describes each quirk once: the firmware, what it does, what ironfence does, and one test", () => {
    assert.ok(quirks.length >= ENTRIES_MIN, String(quirks.length));
    assert.equal(new Set(quirks.map(({ vendor, entry }) => `${vendor} ${entry.text}`)).size, quirks.length);
    for (const { entry } of quirks) {
      assert.match(entry.text, /^\*\*[^*]+\*\*: .+ ironfence: ./);
      assert.equal(namedTests(entry).length, 1, entry.text);
    }
  });
});
