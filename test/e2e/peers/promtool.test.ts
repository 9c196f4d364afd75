import { test } from "node:test";
import { run } from "../../../hack/lib/run.ts";
import { repositoryPath } from "../../../hack/e2e/world.ts";

// Checks the shipped rules with promtool.

const options = { cwd: repositoryPath("deploy/monitoring"), env: {}, timeoutMs: 120_000 };

test("promtool accepts the rules", async ({ signal }) => {
  await run("promtool", ["check", "rules", "rules.yaml"], { ...options, signal });
});

test("each alert fires when its cause has lasted long enough, not before, and no other alert does", async ({
  signal,
}) => {
  await run("promtool", ["test", "rules", "rules-test.yaml"], { ...options, signal });
});
