import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/run.ts";
import { repositoryPath } from "./world.ts";

/** The commit of 0.1.0. */
const FIRST_VERSION = "96756e9";
const GIT_TIMEOUT_MS = 60_000;

/**
 * Makes the tree of 0.1.0 from the history of this clone, with the packages of the present tree.
 *
 * @throws Error if the clone is too shallow.
 */
export async function checkOutFirstVersion(folder: string): Promise<void> {
  const signal = AbortSignal.timeout(GIT_TIMEOUT_MS);
  const inClone = { cwd: repositoryPath(""), env: {}, timeoutMs: GIT_TIMEOUT_MS, signal };
  await run("git", ["cat-file", "-e", `${FIRST_VERSION}^{commit}`], inClone).catch((cause: unknown) => {
    const advice = "run `git fetch --unshallow`, or test in a full clone";
    throw new Error(`this clone has no commit ${FIRST_VERSION}, which is 0.1.0: ${advice}`, { cause });
  });
  const archive = join(folder, "0.1.0.tar");
  await run("git", ["archive", `--output=${archive}`, FIRST_VERSION], inClone);
  await run("tar", ["-xf", archive, "-C", folder], inClone);
  await symlink(repositoryPath("node_modules"), join(folder, "node_modules"));
}
