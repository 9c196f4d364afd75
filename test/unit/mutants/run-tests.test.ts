import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { runTests } from "../../../hack/mutants/run-tests.ts";

const NEVER = new AbortController().signal;
/** Much longer than a test file needs here on a busy machine. */
const TIMEOUT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "ironfence-run-tests-"));
after(() => rmSync(folder, { recursive: true, force: true }));

async function outcomeOf(source: string, timeoutMs = TIMEOUT_MS): Promise<string | undefined> {
  const preamble = `import assert from "node:assert/strict"; import { describe, it } from "node:test";\n`;
  writeFileSync(join(folder, "a.test.mjs"), preamble + source);
  return (await runTests(folder, "a.test.mjs", timeoutMs, NEVER)).failed;
}

const HANGS = `it("hangs", () => new Promise((resolve) => setTimeout(resolve, ${2 * TIMEOUT_MS})));`;

describe("a test file of which a mutant's fate hangs", () => {
  it("a test file that checks a mutant passes if all its tests pass", async () => {
    assert.equal(await outcomeOf(`it("not ok 1 - but well", () => {});`), undefined);
  });

  it("a test file that checks a mutant ends with the first test that fails and reports its message", async () => {
    const failed = await outcomeOf(`
      describe("outer", () => {
        it("is well", () => {});
        it("counts", () => assert.equal(1, 2, "one is not two"));
        it("fails, too", () => assert.fail("another"));
        ${HANGS}
      });`);
    assert.match(failed ?? "", /^counts: .*one is not two/);
  });

  it("a test file that checks a mutant reports a message of several lines in one line", async () => {
    assert.match((await outcomeOf(`it("counts", () => assert.deepEqual([1], [2]));`)) ?? "", /^counts: .*\+ 1 - 2/);
  });

  it("a test file that checks a mutant and does not end in time is reported as late, without a failed test", async () => {
    assert.equal(await outcomeOf(HANGS, 2_000), "no end within 2 s");
  });

  it("a test file that checks a mutant and cannot be loaded is reported with its error", async () => {
    const failed = await outcomeOf(`import "./absent.mjs";`);
    assert.match(failed ?? "", /^exit code 1, and no test that failed: .*absent\.mjs/);
  });
});
