import assert from "node:assert/strict";
import { globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { applyEdit } from "../../../hack/mutants/edit.ts";
import { isPure, testsFor } from "../../../hack/mutants/generated/areas.ts";
import { generatedCandidates } from "../../../hack/mutants/generated/candidates.ts";
import { generateMutants } from "../../../hack/mutants/generated/generate.ts";
import { Reach } from "../../../hack/mutants/reach.ts";
import { runTests } from "../../../hack/mutants/run-tests.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

describe("generated mutants", () => {
  const SOURCE = `export function isOld(ageMs: number): boolean {\n  return ageMs >= 5;\n}\n`;

  it("generated mutants change one place of the source, and name its line", async () => {
    const mutants = await generateMutants("src/a.ts", SOURCE);
    const changed = mutants.map(({ edit }) => applyEdit(SOURCE, edit));
    assert.ok(changed.includes(SOURCE.replace("ageMs >= 5", "ageMs > 5")));
    assert.ok(changed.includes(SOURCE.replace("ageMs >= 5", "true")));
    assert.equal(new Set(changed).size, mutants.length);
    assert.ok(!changed.includes(SOURCE));
    const line = mutants.find(({ edit }) => edit.replacement === "ageMs > 5")?.line;
    assert.equal(line, 2);
  });

  it("generated mutants leave messages alone", async () => {
    assert.deepEqual(await generateMutants("src/a.ts", 'export const MESSAGE = "the host is off";\n'), []);
  });

  it("generated mutants can be asked for by file, and by line", async () => {
    const ofFile = await generatedCandidates(["src/kube/lease/lease-term.ts"]);
    const place = ofFile.at(-1)?.id ?? "";
    const ofLine = await generatedCandidates([place]);
    assert.ok(ofLine.length > 0 && ofLine.length < ofFile.length);
    assert.ok(ofLine.every(({ id }) => id === place));
  });

  it("generated mutants are made of code that does not wait, unless a file is named", async () => {
    assert.ok(isPure("export const decide = (now: number): number => now + 1;"));
    assert.ok(!isPure("export async function read(): Promise<void> {}"));
    const files = new Set((await generatedCandidates()).map(({ edit }) => edit.file));
    assert.ok(files.size > 50);
  });

  it("generated mutants are judged by test files that are there, for each folder of src", () => {
    for (const folder of readdirSync(join(ROOT, "src"), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    )) {
      const { fast, slow } = testsFor(`src/${folder.name}/a.ts`, ROOT);
      assert.ok(fast.length > 0 || globSync(`src/${folder.name}/**/*.ts`, { cwd: ROOT }).length === 0, folder.name);
      for (const file of slow) assert.ok(!fast.includes(file), file);
    }
  });
});

describe("the code that a test file runs", () => {
  const folder = mkdtempSync(join(tmpdir(), "ironfence-reach-"));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("the code that a test file runs is known to the branch, and nothing else counts as run", async () => {
    const source = `export function sign(n: number): string {\n  if (n < 0) return "minus";\n  return "plus";\n}\nexport const never = () => 1;\n`;
    mkdirSync(join(folder, "src"));
    writeFileSync(join(folder, "src/sign.ts"), source);
    writeFileSync(join(folder, "src/other.ts"), source);
    writeFileSync(join(folder, "a.test.ts"), `import { sign } from "./src/sign.ts";\nsign(1);\n`);
    const coverage = join(folder, "coverage");
    const { failed } = await runTests(folder, "a.test.ts", 60_000, new AbortController().signal, {
      NODE_V8_COVERAGE: coverage,
    });
    assert.equal(failed, undefined);
    const reach = await Reach.read(coverage, folder);
    const ran = (text: string, file = "src/sign.ts"): boolean => reach.has(file, source.indexOf(text));
    assert.equal(ran("n < 0"), true);
    assert.equal(ran(`return "plus"`), true);
    assert.equal(ran(`return "minus"`), false);
    assert.equal(ran("=> 1"), false);
    assert.equal(ran("n < 0", "src/other.ts"), false);
  });
});
