import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

// The lint rules of .oxlintrc.json name the arrows that are forbidden one by one. These tests find a circle whatever
// folders it runs through, also through folders that no rule names yet.

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

describe("the folders and files of src", () => {
  const imports = readImports();

  it("no two folders of src import each other, directly or through other folders", () => {
    const folders = new Map<string, Set<string>>();
    for (const [file, imported] of imports) {
      const own = dirname(file);
      const others = folders.get(own) ?? new Set();
      for (const other of imported) if (dirname(other) !== own) others.add(dirname(other));
      folders.set(own, others);
    }
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

/** Each file of src with the files of src that it imports. */
function readImports(): Map<string, Set<string>> {
  const files = new Map<string, Set<string>>();
  for (const file of globSync("src/**/*.ts", { cwd: ROOT })) {
    const source = readFileSync(join(ROOT, file), "utf8");
    const specifiers = [...source.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(
      ([, specifier = ""]) => specifier,
    );
    files.set(file, new Set(specifiers.map((specifier) => relative(ROOT, join(ROOT, dirname(file), specifier)))));
  }
  return files;
}

/** What leads back to itself. */
function onCircles(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...graph.keys()].filter((start) => {
    const reached = new Set<string>();
    const open = [...(graph.get(start) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(...(graph.get(next) ?? []));
    }
    return reached.has(start);
  });
}
