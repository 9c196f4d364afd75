import assert from "node:assert/strict";
import { it } from "node:test";
import { withoutTrailingSlashes } from "../../../../src/runtime/text/trailing-slashes.ts";

it("slashes at the end of a text are taken away, and no others", () => {
  for (const [text, without] of [
    ["", ""],
    ["/", ""],
    ["//", ""],
    ["/a", "/a"],
    ["/a/", "/a"],
    ["/a//b///", "/a//b"],
    [`/a${"/".repeat(150_000)}x`, `/a${"/".repeat(150_000)}x`],
    [`/a${"/".repeat(150_000)}`, "/a"],
  ] as const) {
    assert.equal(withoutTrailingSlashes(text), without);
  }
});
