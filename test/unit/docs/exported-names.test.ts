import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const DECLARATION = /^export (?:abstract |async )*(?:function\*?|const|let|class|interface|type|enum) (?<name>\w+)/gm;

/** Each exported name, with the files of `src` that declare it. */
function declarations(): Map<string, Set<string>> {
  const files = new Map<string, Set<string>>();
  for (const file of globSync("src/**/*.ts", { cwd: ROOT })) {
    for (const { groups } of readFileSync(join(ROOT, file), "utf8").matchAll(DECLARATION)) {
      const name = groups?.["name"] ?? "";
      files.set(name, (files.get(name) ?? new Set()).add(file));
    }
  }
  return files;
}

it("no two files of src export the same name, so that a search for it finds one thing", () => {
  const files = declarations();
  assert.ok(files.size > 2_000, `${files.size} names`);
  assert.deepEqual(
    [...files].filter(([, declaredIn]) => declaredIn.size > 1).map(([name, declaredIn]) => [name, ...declaredIn]),
    [],
  );
});

it("no type of a file of src has the name of a type that another file exports", () => {
  const exported = declarations();
  const local = globSync("src/**/*.ts", { cwd: ROOT }).flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(/^(?:abstract )?(?:class|interface|type) (?<name>\w+)/gm)].map(
      ({ groups }) => [file, groups?.["name"] ?? ""] as const,
    ),
  );
  assert.ok(local.length > 100, `${local.length} types`);
  assert.deepEqual(
    local.filter(([, name]) => exported.has(name)),
    [],
  );
});
