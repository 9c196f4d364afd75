import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { findGo, goBuild } from "../../hack/lib/go.ts";
import { run } from "../../hack/lib/run.ts";
import type { Alert } from "../../hack/monitoring/alerts.ts";
import { runbookOf } from "../../hack/monitoring/alerts.ts";

// Runs the commands of runbooks in a shell with the real kubectl, as an operator would paste them.

/** The first run builds kubectl, which takes minutes. */
const BUILD_TIMEOUT_MS = 7 * 60_000;
const COMMAND_TIMEOUT_MS = 60_000;

export interface RunbookShell {
  /** Runs a command. @throws Error with its output if it fails. */
  run(command: string): Promise<string>;
  close(): Promise<void>;
}

/** The lines of the blocks of commands under a heading of a runbook. */
export function runbookCommands(alert: Alert["name"], heading: "How to see it" | "What to do"): string[] {
  const page = readFileSync(repositoryPath(runbookOf({ name: alert })), "utf8");
  const section = page.split(`## ${heading}\n`)[1]?.split(/^## /m)[0] ?? assert.fail(`${alert}: ${heading}`);
  const blocks = [...section.matchAll(/^ *```\n(.*?)^ *```$/gms)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => block.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()])));
}

/**
 * Replaces placeholders in a command with existing objects.
 *
 * @param objects the replacement of each placeholder, such as `node NAME`.
 */
export function fillIn(command: string, objects: Readonly<Record<string, string>>): string {
  const filled = Object.entries(objects).reduce((text, [from, to]) => text.replaceAll(from, to), command);
  assert.doesNotMatch(filled, /\b(?:NAME|NAMESPACE|POD)\b(?!:)/, `${command}: add what the placeholder stands for`);
  return filled;
}

export async function openRunbookShell(kubeconfig: string): Promise<RunbookShell> {
  const go = findGo();
  assert.ok(go !== undefined, "install Go 1.26 or newer (https://go.dev/dl/)");
  const folder = await mkdtemp(join(tmpdir(), "ironfence-runbooks-"));
  const build = { folder: repositoryPath("hack/peers/kubectl"), packagePath: ".", ldflags: "-s -w" };
  await goBuild(go, { ...build, output: join(folder, "kubectl") }, AbortSignal.timeout(BUILD_TIMEOUT_MS));
  const ironfence = join(folder, "ironfence");
  await writeFile(ironfence, `#!/bin/sh\nexec "${process.execPath}" "${repositoryPath("src/main.ts")}" "$@"\n`);
  await chmod(ironfence, 0o755);
  const env = {
    PATH: `${folder}:${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: folder,
    KUBECONFIG: kubeconfig,
  };
  return {
    run: (command) =>
      run("bash", ["-euo", "pipefail", "-c", command], {
        env,
        timeoutMs: COMMAND_TIMEOUT_MS,
        signal: new AbortController().signal,
      }),
    close: () => rm(folder, { recursive: true }),
  };
}
