import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { findGo, goBuild } from "../../../hack/lib/go.ts";
import { run } from "../../../hack/lib/run.ts";

// Validates the OLM bundle with the library of `operator-sdk bundle validate`.

/** The first run builds the program, which takes minutes. */
const BUILD_TIMEOUT_MS = 1_200_000;
const VALIDATE_TIMEOUT_MS = 60_000;

void describe("the bundle of OLM", () => {
  let folder: string;
  let program: string;
  const signal = new AbortController().signal;

  before(
    async () => {
      folder = await mkdtemp(join(tmpdir(), "ironfence-olm-"));
      program = join(folder, "olm");
      const go = findGo();
      if (go === undefined) throw new Error("install Go 1.26 or newer (https://go.dev/dl/)");
      const build = { folder: repositoryPath("hack/peers/olm"), packagePath: ".", output: program, ldflags: "-s -w" };
      await goBuild(go, build, signal);
    },
    { timeout: BUILD_TIMEOUT_MS },
  );
  after(() => rm(folder, { recursive: true, force: true }));

  void test("the bundle of OLM has no error and no warning by the validators of operator-framework", async () => {
    await run(program, [repositoryPath("deploy/olm")], { env: {}, timeoutMs: VALIDATE_TIMEOUT_MS, signal });
  });
});
