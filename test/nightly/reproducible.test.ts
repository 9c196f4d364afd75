import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { run } from "../../hack/lib/run.ts";

const RELEASE_TIMEOUT_MS = 200_000;

void test("a release is the same, byte for byte, if it is made again: chart, manifests, images, executables and plugin", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-reproducible-"));
  const sumsOf = async (name: string): Promise<string> => {
    const output = join(folder, name);
    const options = { env: {}, timeoutMs: RELEASE_TIMEOUT_MS, signal: new AbortController().signal };
    await run(process.execPath, [repositoryPath("hack/release/main.ts"), "--dry-run", "--output", output], options);
    return readFile(join(output, "SHA256SUMS"), "utf8");
  };
  try {
    const sums = await sumsOf("once");
    assert.match(sums, /linux-arm64\.tar\.gz$/m);
    assert.equal(await sumsOf("again"), sums);
  } finally {
    await rm(folder, { recursive: true });
  }
});
