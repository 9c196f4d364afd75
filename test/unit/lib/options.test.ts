import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const MODULE = new URL("../../../hack/lib/options.ts", import.meta.url).href;

function run(...args: string[]) {
  const script = `import { parseOptions } from ${JSON.stringify(MODULE)};
    console.log(parseOptions({ hosts: { type: "string", default: "1" } }).hosts);`;
  return spawnSync(process.execPath, ["--input-type=module", "--eval", script, "--", ...args], {
    encoding: "utf8",
    timeout: 30_000,
  });
}

test("options are read, absent ones by their default", () => {
  assert.equal(run().stdout, "1\n");
  assert.equal(run("--hosts", "3").stdout, "3\n");
});

test("a wrong command line is reported in a line, without a stack trace", () => {
  for (const [args, words] of [
    [["--bogus"], /^Unknown option '--bogus'/],
    [["--hosts"], /'--hosts <value>' argument missing/],
    [["extra"], /^Unexpected argument 'extra'/],
  ] as const) {
    const { status, stderr } = run(...args);
    assert.equal(status, 2);
    assert.match(stderr, words);
    assert.ok(!stderr.includes("    at "), stderr);
  }
});
