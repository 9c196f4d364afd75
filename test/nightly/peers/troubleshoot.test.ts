import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { findGo } from "../../../hack/lib/go.ts";
import { run } from "../../../hack/lib/run.ts";
import { PLANTED, PLANTED_TEXTS } from "../../lib/planted-texts.ts";

// Reads the spec in deploy/troubleshoot with the types of troubleshoot, and redacts with its code.

const SPEC = repositoryPath("deploy/troubleshoot/support-bundle.yaml");
/** The first run builds the program, which takes minutes. */
const TIMEOUT_MS = 7 * 60_000;

test("troubleshoot knows every field of the spec, and removes each planted secret", async ({ signal }) => {
  const go = findGo();
  assert.ok(go !== undefined, "install Go 1.26 or newer (https://go.dev/dl/)");
  const folder = await mkdtemp(join(tmpdir(), "ironfence-troubleshoot-"));
  try {
    const log = join(folder, "agent.log");
    await writeFile(log, `${PLANTED_TEXTS.join("\n")}\nthe host reads Off\n`);
    const options = { cwd: repositoryPath("hack/peers/troubleshoot"), env: { CGO_ENABLED: "0" }, signal };
    const redact = (spec: string): Promise<string> =>
      run(go, ["run", "-buildvcs=false", ".", spec, log], { ...options, timeoutMs: TIMEOUT_MS });
    const redacted = await redact(SPEC);
    for (const secret of PLANTED) assert.ok(!redacted.includes(secret), `${secret} is in:\n${redacted}`);
    assert.match(redacted, /@bmc-1\.example/);
    assert.match(redacted, /the host reads Off\n$/);
    const wrong = join(folder, "wrong.yaml");
    await writeFile(wrong, "kind: SupportBundle\nspec:\n  collector: []\n---\nkind: Redactor\n");
    await assert.rejects(redact(wrong), /unknown field "collector"/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
