import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../control-plane/binaries.ts";
import { run } from "../lib/run.ts";
import { repositoryPath } from "./world.ts";

/** The commit of 0.1.0. */
const FIRST_VERSION = "96756e9";
const GIT_TIMEOUT_MS = 60_000;
const INSTALL_TIMEOUT_MS = 5 * 60_000;
/**
 * Installs the dependencies of the agent from the package-lock.json of 0.1.0, once, in about 6 s. Node is the present
 * one.
 */
const INSTALL = ["ci", "--omit=dev", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"];

/**
 * Checks out 0.1.0 into the cache folder from the history of this clone, and installs the packages of its lock file.
 *
 * @returns the folder. Callers must not change it.
 * @throws Error if the clone is too shallow, or npm cannot install the packages.
 */
export async function installFirstVersion(): Promise<string> {
  const cache = cacheFolder("first-version");
  const folder = join(cache, FIRST_VERSION);
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, "unpacked-"));
  try {
    const signal = AbortSignal.timeout(GIT_TIMEOUT_MS + INSTALL_TIMEOUT_MS);
    const inClone = { cwd: repositoryPath(""), env: {}, timeoutMs: GIT_TIMEOUT_MS, signal };
    await run("git", ["cat-file", "-e", `${FIRST_VERSION}^{commit}`], inClone).catch((cause: unknown) => {
      const advice = "run `git fetch --unshallow`, or test in a full clone";
      throw new Error(`this clone has no commit ${FIRST_VERSION}, which is 0.1.0: ${advice}`, { cause });
    });
    const archive = join(work, "0.1.0.tar");
    await run("git", ["archive", `--output=${archive}`, FIRST_VERSION], inClone);
    await run("tar", ["-xf", archive, "-C", work], inClone);
    await run("npm", INSTALL, { ...inClone, cwd: work, timeoutMs: INSTALL_TIMEOUT_MS });
    await rename(work, folder).catch((error: unknown) => {
      // Another test file created the folder first.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return folder;
}
