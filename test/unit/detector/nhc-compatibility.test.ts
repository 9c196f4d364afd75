import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";

// The documentation names a test for each behaviour; this one sees to it that they are there.

const DOCUMENT = new URL("../../../docs/nhc-compatibility.md", import.meta.url);
const TESTS = new URL("../../", import.meta.url);

interface Named {
  behaviour: string;
  file: string;
  test: string;
}

/** The last cell of each row: a file and the name of a test in it, once or more. */
function readNamed(): Named[] {
  const rows = readFileSync(DOCUMENT, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| "));
  return rows.flatMap((row) => {
    const [, behaviour = "", , tests = ""] = row.split("|").map((cell) => cell.trim());
    if (tests === "shown by") return [];
    return tests.split("<br>").map((entry): Named => {
      const match = /^`([^`]+)` (.+)$/.exec(entry);
      return { behaviour, file: match?.[1] ?? "", test: match?.[2] ?? "" };
    });
  });
}

describe("docs/nhc-compatibility.md", () => {
  it("names for each behaviour a test that is there", () => {
    const named = readNamed();
    assert.ok(named.length > 50, `${named.length}`);
    for (const { behaviour, file, test } of named) {
      const url = new URL(file, TESTS);
      assert.ok(file.endsWith(".test.ts") && existsSync(url), `${behaviour}: ${file} is not there`);
      const source = readFileSync(url, "utf8");
      // In backquotes the name of a table's test ends in what tells its rows apart.
      const isThere = source.includes(`"${test}"`) || source.includes(`\`${test} (`);
      assert.ok(isThere, `${behaviour}: ${file} has no test "${test}"`);
    }
  });
});
