import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";

// The reference of BMC quirks names a test for each; this one sees to it that they are there.

const TESTS = new URL("../../", import.meta.url);
const ROWS_MIN = 45;

const rows = readFileSync(new URL("../../../docs/reference/bmc-quirks.md", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2)
  .map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

describe("the reference of BMC quirks", () => {
  it("has rows enough, each of its own, and no empty cell", () => {
    assert.ok(rows.length >= ROWS_MIN, String(rows.length));
    assert.equal(new Set(rows.map((cells) => cells.slice(0, 3).join("|"))).size, rows.length);
    for (const cells of rows) assert.ok(cells.length === 5 && cells.every((cell) => cell !== ""), cells.join(" | "));
  });

  for (const [, , quirk, , shownBy = ""] of rows) {
    it(`names a test that is there: ${quirk}`, () => {
      const [, file = "", name = ""] = /^`([^`]+\.test\.ts)` (.+)$/.exec(shownBy) ?? [];
      const url = new URL(file, TESTS);
      assert.ok(existsSync(url), shownBy);
      // Vendors' trees have their names in a table beside their test.
      const table = new URL(file.replace(/\.test\.ts$/, ".ts"), TESTS);
      const sources = [url, table].filter((source) => existsSync(source)).map((source) => readFileSync(source, "utf8"));
      assert.ok(name.length > 5 && sources.some((source) => source.includes(name)), shownBy);
    });
  }
});
