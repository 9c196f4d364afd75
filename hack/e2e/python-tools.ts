import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../control-plane/binaries.ts";
import type { Progress } from "../control-plane/binaries.ts";
import { run } from "../lib/run.ts";

const REQUIREMENTS = fileURLToPath(new URL("python-requirements.txt", import.meta.url));
const INSTALL_TIMEOUT_MS = 5 * 60_000;

/**
 * Installs the packages of python-requirements.txt with pip into a virtual environment, once for each version of the
 * file.
 *
 * @returns the folder of programs in the environment, including `python`.
 * @throws Error that says what to install if Python or its venv module is missing.
 */
export async function installPythonTools(progress: Progress, signal: AbortSignal): Promise<string> {
  const digest = createHash("sha256")
    .update(await readFile(REQUIREMENTS))
    .digest("hex")
    .slice(0, 12);
  const cache = cacheFolder("python-tools");
  const folder = join(cache, digest);
  const programs = join(folder, "bin");
  const done = join(folder, ".installed");
  if (existsSync(done)) return programs;
  progress(`installing sushy-emulator, validators and clients from PyPI into ${folder} (about 30 s, once)`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(cache, { recursive: true });
  const options = { env: {}, timeoutMs: INSTALL_TIMEOUT_MS, signal };
  try {
    await run("python3", ["-m", "venv", folder], options);
  } catch (error) {
    throw new Error("python3 with its venv module is missing (Debian: apt-get install python3 python3-venv)", {
      cause: error,
    });
  }
  const pip = ["-m", "pip", "install", "--quiet", "--no-input", "--requirement", REQUIREMENTS];
  try {
    await run(join(programs, "python"), pip, options);
  } catch (error) {
    throw new Error(`pip could not install ${REQUIREMENTS}; is the Python package index within reach?`, {
      cause: error,
    });
  }
  await writeFile(done, "");
  return programs;
}
