import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { runTiers } from "../../../hack/nightly/run-tiers.ts";
import type { Tier } from "../../../hack/nightly/tiers.ts";
import { TIERS } from "../../../hack/nightly/tiers.ts";

const tier = (name: string): Tier => ({ name, shows: `what ${name} shows`, run: [name], timeoutMinutes: 2 });

describe("the nightly checks", () => {
  it("the nightly checks go on after a failure, and print the result of every tier at the end", async () => {
    const printed: string[] = [];
    const answers: Record<string, () => Promise<number | null>> = {
      good: () => Promise.resolve(0),
      bad: () => Promise.resolve(3),
      endless: () => Promise.resolve(null),
      missing: () => Promise.reject(new Error("spawn npm ENOENT")),
    };
    const given: number[] = [];
    const report = await runTiers(
      Object.keys(answers).map(tier),
      ([name = ""], timeoutMs) => {
        given.push(timeoutMs);
        return answers[name]?.() ?? assert.fail();
      },
      (text) => printed.push(text),
    );
    assert.deepEqual(
      report.map(({ result }) => result),
      ["passed", "failed", "timed out", "could not start"],
    );
    assert.deepEqual(given, [120_000, 120_000, 120_000, 120_000]);
    assert.match(printed.slice(-3).join("\n"), /^failed: bad \(0 s\): what bad shows\ntimed out: endless/);
  });

  it("the nightly checks are commands of package.json", async () => {
    const { scripts } = JSON.parse(await readFile(new URL("../../../package.json", import.meta.url), "utf8")) as {
      scripts: Record<string, string>;
    };
    for (const { run } of TIERS) assert.ok(scripts[run[0] ?? ""] !== undefined, run.join(" "));
  });

  it("the nightly checks play every file of test/nightly, which .ci/run does not", () => {
    const root = fileURLToPath(new URL("../../..", import.meta.url));
    const files = globSync("test/nightly/**/*.test.ts", { cwd: root });
    assert.ok(files.length >= 2);
    const played = new Set(TIERS.flatMap(({ run }) => run));
    for (const file of files) assert.ok(played.has(file), file);
  });
});

describe("the tiers of the nightly run", () => {
  const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

  it("the tiers of the nightly run are commands, benchmarks and test files that exist", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const bench = read("hack/bench/main.ts");
    for (const { name, run } of TIERS) {
      const [script = "", , first = ""] = run;
      assert.ok(Object.hasOwn(scripts, script), `${name}: npm run ${script}`);
      if (script === "bench") assert.ok(bench.includes(`what === "${first}"`), `${name}: bench -- ${first}`);
      for (const file of run.filter((word) => word.endsWith(".ts"))) assert.notEqual(read(file), "", file);
    }
  });
});
