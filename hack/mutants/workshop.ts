import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";
import type { TestRun } from "./run-tests.ts";
import { runTests } from "./run-tests.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** All that tests read. */
const COPIED = ["src", "test", "hack", "deploy", "docs", "examples", "package.json", "tsconfig.json", "README.md"];

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

  run(file: string, timeoutMs: number, signal: AbortSignal): Promise<TestRun> {
    return runTests(this.#folder, file, timeoutMs, signal);
  }

  /** Does `work` with the mutant in place, and takes it out again. */
  async withMutant<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const path = join(this.#folder, mutant.file);
    const source = await readFile(path, "utf8");
    await writeFile(path, mutate(source, mutant));
    try {
      return await work();
    } finally {
      await writeFile(path, source);
    }
  }
}
