import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { it } from "node:test";

/** A run without a bound up to the end of the text, in an expression that may begin anywhere: `/\/+$/`. */
const RUN_TO_END = /(?<=^|[(=,:?[\s])\/(?!\^|\/)(?:[^\n/\\]|\\.)*[+*]\)?\$\)?\/[a-z]*[,.)]/;

it("no expression for texts of devices looks for a run up to their end from each character", () => {
  for (const slow of [String.raw`x.replace(/\/+$/, "")`, String.raw`/(\d+)$/.exec(id)`, String.raw`/\s*$/.test(id)`]) {
    assert.match(slow, RUN_TO_END);
  }
  const files = [...globSync("src/bmc/**/*.ts"), "src/runtime/text/trailing-slashes.ts"];
  const slow = files
    // The address of a server under test comes from its user.
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
