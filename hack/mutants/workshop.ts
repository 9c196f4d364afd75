import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** All that tests read. */
const COPIED = ["src", "test", "hack", "deploy", "docs", "examples", "package.json", "tsconfig.json", "README.md"];
/** A mutant may wait for what never comes: then it is killed, too. */
const TIMEOUT_MS = 120_000;

/** The first failure of a run: the test's name, or why there is none; undefined where all tests passed. */
export interface Outcome {
  failed: string | undefined;
}

/** The code with the mutant in place. @throws Error unless its text stands exactly once, and is another one after. */
export function mutate(source: string, { id, file, find, replace }: Mutant): string {
  const found = source.split(find).length - 1;
  if (found !== 1) throw new Error(`mutant ${id}: its text stands ${found} times in ${file}: write the mutant anew`);
  if (find === replace) throw new Error(`mutant ${id} changes nothing`);
  return source.replace(find, () => replace);
}

/** A copy of the tree in which code is broken. The packages are those of the tree. */
export class MutantWorkshop {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<MutantWorkshop> {
    const folder = await mkdtemp(join(tmpdir(), "ironfence-mutants-"));
    for (const name of COPIED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    return new MutantWorkshop(folder);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Runs a mutant's killers with the mutant in place, and takes it out again. */
  async try(mutant: Mutant, signal: AbortSignal): Promise<Outcome> {
    const path = join(this.#folder, mutant.file);
    const source = await readFile(path, "utf8");
    await writeFile(path, mutate(source, mutant));
    try {
      return await this.run(mutant.killers, signal);
    } finally {
      await writeFile(path, source);
    }
  }

  async run(files: readonly string[], signal: AbortSignal): Promise<Outcome> {
    const child = spawn(process.execPath, ["--test", "--test-reporter=tap", ...files], {
      cwd: this.#folder,
      signal,
      timeout: TIMEOUT_MS,
      // The runner of the tests must not take itself for a part of another run.
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let report = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (report += chunk));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject).once("close", resolve);
    });
    if (code === 0) return { failed: undefined };
    if (code === null) return { failed: `no end within ${TIMEOUT_MS / 1_000} s` };
    return { failed: firstFailure(report) ?? `exit code ${code}` };
  }
}

/** The test that failed first; what it is a part of is reported after it. */
function firstFailure(report: string): string | undefined {
  return /^ *not ok \d+ - (.+)$/m.exec(report)?.[1];
}
