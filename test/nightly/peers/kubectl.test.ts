import assert from "node:assert/strict";
import { copyFile, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { findGo, goBuild } from "../../../hack/lib/go.ts";
import { run } from "../../../hack/lib/run.ts";

// The plugin in the real kubectl.

/** The first run builds kubectl, which takes minutes. */
const BUILD_TIMEOUT_MS = 7 * 60_000;
const COMMAND_TIMEOUT_MS = 60_000;

void describe("kubectl, with ironfence as its plugin", () => {
  let folder: string;
  const kubectl = (...args: string[]): Promise<string> =>
    run(join(folder, "kubectl"), args, {
      env: { PATH: `${folder}:${dirname(process.execPath)}:/usr/bin:/bin`, HOME: folder, KUBECONFIG: "" },
      timeoutMs: COMMAND_TIMEOUT_MS,
      signal: new AbortController().signal,
    });

  before(async () => {
    const go = findGo();
    assert.ok(go !== undefined, "install Go 1.26 or newer (https://go.dev/dl/)");
    folder = await mkdtemp(join(tmpdir(), "ironfence-kubectl-"));
    const output = join(folder, "kubectl");
    const build = { folder: repositoryPath("hack/peers/kubectl"), packagePath: ".", output, ldflags: "-s -w" };
    await goBuild(go, build, AbortSignal.timeout(BUILD_TIMEOUT_MS));
    const options = { env: {}, timeoutMs: COMMAND_TIMEOUT_MS, signal: new AbortController().signal };
    await run(process.execPath, [repositoryPath("hack/build/main.ts"), join(folder, "ironfence.js")], options);
    // It says that the program is an ES module.
    await copyFile(repositoryPath("package.json"), join(folder, "package.json"));
    for (const name of ["kubectl-ironfence", "kubectl_complete-ironfence"]) {
      await symlink("ironfence.js", join(folder, name));
    }
  });
  after(() => rm(folder, { recursive: true }));

  void test("kubectl, with ironfence as its plugin, lists it, and runs it with its arguments", async () => {
    assert.match(await kubectl("plugin", "list"), /kubectl-ironfence$/m);
    assert.match(await kubectl("ironfence", "version"), /^\d+\.\d+\.\d+/);
    assert.match(await kubectl("ironfence", "explain", "--help"), /^ {2}kubectl ironfence explain node /m);
  });

  void test("kubectl, with ironfence as its plugin, takes proposals for commands and flags from it", async () => {
    assert.match(
      await kubectl("__complete", "ironfence", "che"),
      /^check\tCheck whether every node could be fenced now$/m,
    );
    assert.match(await kubectl("__complete", "ironfence", "check", "--fail-on", ""), /^warning\b/m);
  });
});
