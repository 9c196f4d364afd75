import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../control-plane/binaries.ts";
import { run } from "../lib/run.ts";
import pins from "./debian.json" with { type: "json" };

const DOWNLOAD_TIMEOUT_MS = 120_000;

/** A package of Debian that the image takes files from. */
export type DebianPackage = keyof typeof pins;

/**
 * Fetches the pinned packages with apt, which knows the mirror and the proxy of this machine, and unpacks them.
 *
 * @returns what `use` returns; it gets the folder of each package.
 * @throws Error for a package whose contents are not those of its checksum.
 */
export async function withDebianPackages<T>(
  use: (folders: Readonly<Record<DebianPackage, string>>) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const cache = cacheFolder("image");
  await mkdir(cache, { recursive: true });
  const root = await mkdtemp(join(cache, "unpacked-"));
  try {
    const folders: Record<string, string> = {};
    for (const [name, { version, file, sha256 }] of Object.entries(pins)) {
      const options = { cwd: cache, env: {}, timeoutMs: DOWNLOAD_TIMEOUT_MS, signal };
      // apt writes a colon of a version as %3a; none of these has one.
      if (!existsSync(join(cache, file))) await run("apt-get", ["download", "-q", `${name}=${version}`], options);
      const actual = createHash("sha256")
        .update(await readFile(join(cache, file)))
        .digest("hex");
      if (actual !== sha256) throw new Error(`${file} has the SHA-256 ${actual}, and ${sha256} is pinned`);
      const folder = join(root, name);
      await run("dpkg-deb", ["--extract", join(cache, file), folder], options);
      folders[name] = folder;
    }
    return await use(folders as Record<DebianPackage, string>);
  } finally {
    await rm(root, { recursive: true });
  }
}
