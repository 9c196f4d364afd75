import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { importsOfFiles, importsOfFolders, onCircles } from "../../../hack/graph/graph.ts";

// The lint rules of .oxlintrc.json name the forbidden imports one by one. These tests find every circle, also through
// folders that no rule names yet.

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

describe("the folders and files of src", () => {
  const imports = importsOfFiles(ROOT);

  it("no two folders of src import each other, directly or through other folders", () => {
    const folders = importsOfFolders(imports);
    assert.ok(folders.size > 50, `${folders.size} folders`);
    assert.deepEqual(onCircles(folders), []);
  });

  it("no files of src import each other in a circle, even if they only import types", () => {
    assert.ok(imports.size > 300, `${imports.size} files`);
    assert.deepEqual(onCircles(imports), []);
  });

  it("a circle through three folders is found, and what only leads to it is not part of it", () => {
    const graph = new Map([
      ["start", new Set(["a"])],
      ["a", new Set(["b"])],
      ["b", new Set(["c", "end"])],
      ["c", new Set(["a"])],
      ["end", new Set<string>()],
    ]);
    assert.deepEqual(onCircles(graph), ["a", "b", "c"]);
  });
});
