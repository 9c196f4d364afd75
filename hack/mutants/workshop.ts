import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Edit } from "./edit.ts";
import { applyEdit } from "./edit.ts";
import { Reach } from "./reach.ts";
import type { TestRun } from "./run-tests.ts";
import { runTests } from "./run-tests.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Everything that tests read. */
const COPIED = ["src", "test", "hack", "deploy", "docs", "examples", "package.json", "tsconfig.json", "README.md"];

/** A copy of the tree in which code is changed. It uses the node_modules of the tree. */
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

  run(file: string, timeoutMs: number, signal: AbortSignal): Promise<TestRun> {
    return runTests(this.#folder, file, timeoutMs, signal);
  }

  /** Runs the test file, and returns which code it has run. */
  async runWithReach(file: string, timeoutMs: number, signal: AbortSignal): Promise<{ run: TestRun; reach: Reach }> {
    const folder = await mkdtemp(join(tmpdir(), "ironfence-mutants-reach-"));
    try {
      const run = await runTests(this.#folder, file, timeoutMs, signal, { NODE_V8_COVERAGE: folder });
      return { run, reach: await Reach.read(folder, this.#folder) };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Whether the code in the copy compiles without type errors. */
  async compiles(signal: AbortSignal): Promise<boolean> {
    try {
      await promisify(execFile)("node_modules/.bin/tsc", ["--noEmit"], { cwd: this.#folder, signal });
      return true;
    } catch (error) {
      signal.throwIfAborted();
      // A number is the exit code. If tsc could not be started, the code is a string.
      if (typeof (error as { code?: unknown }).code !== "number") throw error;
      return false;
    }
  }

  /** Applies the edit, runs `work`, and reverts the edit. */
  async withEdit<T>(edit: Edit, work: () => Promise<T>): Promise<T> {
    const path = join(this.#folder, edit.file);
    const source = await readFile(path, "utf8");
    await writeFile(path, applyEdit(source, edit));
    try {
      return await work();
    } finally {
      await writeFile(path, source);
    }
  }
}
