import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { it } from "node:test";

/**
 * Finds expressions such as `/\/+$/`: an unbounded repetition up to the end of the text that may begin anywhere, which
 * takes quadratic time.
 */
const RUN_TO_END = /(?<=^|[(=,:?[\s])\/(?!\^|\/)(?:[^\n/\\]|\\.)*[+*]\)?\$\)?\/[a-z]*[,.)]/;

it("no expression for texts of devices looks for a run up to their end from each character", () => {
  for (const slow of [String.raw`x.replace(/\/+$/, "")`, String.raw`/(\d+)$/.exec(id)`, String.raw`/\s*$/.test(id)`]) {
    assert.match(slow, RUN_TO_END);
  }
  const files = [...globSync("src/bmc/**/*.ts"), "src/runtime/text/trailing-slashes.ts"];
  const slow = files
    // The conformance tests get the address of the server from their user, so they are skipped.
    .filter((file) => !file.includes("conformance"))
    .flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => RUN_TO_END.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  assert.ok(files.length > 100);
  assert.deepEqual(slow, [], "a long text costs time with its square: bound the text, or go from its end");
});
