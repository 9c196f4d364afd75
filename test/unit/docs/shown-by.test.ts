import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

// Documents name a test for each behaviour, in tables whose last column is "shown by"; this one sees to it that they are there.

const DOCUMENTS = new URL("../../../docs/", import.meta.url);
const TESTS = new URL("../../", import.meta.url);
const HEADING = "shown by";

interface Named {
  behaviour: string;
  file: string;
  test: string;
}

/** The last cell of each row: a file and the name of a test in it, once or more. */
function readNamed(document: string): Named[] {
  const tables = readFileSync(new URL(document, DOCUMENTS), "utf8").split("\n\n");
  return tables.flatMap((table) => {
    const [heading, , ...rows] = table.trim().split("\n").map(readCells);
    if (heading?.at(-1) !== HEADING) return [];
    return rows.flatMap((cells) =>
      (cells.at(-1) ?? "").split("<br>").map((entry): Named => {
        const match = /^`([^`]+)` (.+)$/.exec(entry);
        return { behaviour: cells.slice(0, -1).join(" | "), file: match?.[1] ?? "", test: match?.[2] ?? "" };
      }),
    );
  });
}

function readCells(row: string): string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

describe("what documents say is shown by a test", () => {
  const documents = globSync("**/*.md", { cwd: fileURLToPath(DOCUMENTS) }).filter((name) => readNamed(name).length > 0);

  it("is looked for in every table", () => {
    assert.ok(documents.includes("evidence/nhc-compatibility.md"), documents.join(", "));
    assert.ok(readNamed("evidence/nhc-compatibility.md").length > 50);
  });

  for (const document of documents) {
    it(`has that test, in ${document}`, () => {
      for (const { behaviour, file, test } of readNamed(document)) {
        const url = new URL(file, TESTS);
        assert.ok(file.endsWith(".test.ts") && existsSync(url), `${behaviour}: ${file} is not there`);
        const source = readFileSync(url, "utf8");
        // In backquotes the name of a table's test ends in what tells its rows apart.
        const isThere = source.includes(`"${test}"`) || source.includes(`\`${test} (`);
        assert.ok(isThere, `${behaviour}: ${file} has no test "${test}"`);
      }
    });
  }
});
