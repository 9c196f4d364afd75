import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Edit } from "./edit.ts";
import { applyEdit } from "./edit.ts";
import type { TestRun } from "./run-tests.ts";
import { runTests } from "./run-tests.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** All that tests read. */
const COPIED = ["src", "test", "hack", "deploy", "docs", "examples", "package.json", "tsconfig.json", "README.md"];

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

  run(file: string, timeoutMs: number, signal: AbortSignal): Promise<TestRun> {
    return runTests(this.#folder, file, timeoutMs, signal);
  }

  /** Does `work` with the edit in place, and takes it out again. */
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
