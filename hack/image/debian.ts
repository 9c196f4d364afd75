import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../control-plane/binaries.ts";
import type { Architecture } from "../lib/node-program.ts";
import { ARCHITECTURES } from "../lib/node-program.ts";
import { run } from "../lib/run.ts";
import pins from "./debian.json" with { type: "json" };

const DOWNLOAD_TIMEOUT_MS = 120_000;
const PINS_FILE = fileURLToPath(new URL("debian.json", import.meta.url));

/** A Debian package from which the image contains files. */
export type DebianPackage = keyof typeof pins;
const PACKAGES = Object.keys(pins) as DebianPackage[];

/**
 * Fetches the pinned packages of an architecture with apt, which knows the mirror and the proxy of this machine, and
 * unpacks them.
 *
 * @returns what `use` returns; it gets the folder of each package.
 * @throws Error if a package does not match its checksum, or if Debian has replaced it.
 */
export async function withDebianPackages<T>(
  architecture: Architecture,
  use: (folders: Readonly<Record<DebianPackage, string>>) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const cache = cacheFolder("image");
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, "work-"));
  try {
    const fileOf = (name: DebianPackage): string => join(cache, `${name}_${pins[name].version}_${architecture}.deb`);
    const missing = PACKAGES.filter((name) => !existsSync(fileOf(name)));
    if (missing.length > 0) {
      const apt = await openApt(work, architecture, signal);
      for (const name of missing) await rename(await apt.download(name, pins[name].version), fileOf(name));
    }
    const folders: Record<string, string> = {};
    for (const name of PACKAGES) {
      const actual = await sha256Of(fileOf(name));
      const pinned = pins[name].sha256[architecture];
      if (actual !== pinned) throw new Error(`${fileOf(name)} has the SHA-256 ${actual}, and ${pinned} is pinned`);
      const folder = join(work, name);
      await run("dpkg-deb", ["--extract", fileOf(name), folder], limits(work, signal));
      folders[name] = folder;
    }
    return await use(folders as Record<DebianPackage, string>);
  } finally {
    await rm(work, { recursive: true });
  }
}

/** Writes the versions that Debian has now, with their checksums, to `debian.json`. */
export async function pinDebianPackages(signal: AbortSignal): Promise<void> {
  const cache = cacheFolder("image");
  await mkdir(cache, { recursive: true });
  const newest = Object.fromEntries(
    PACKAGES.map((name) => [name, { version: "", sha256: {} as Record<Architecture, string> }]),
  );
  const work = await mkdtemp(join(cache, "work-"));
  try {
    for (const architecture of ARCHITECTURES) {
      const apt = await openApt(join(work, architecture), architecture, signal);
      for (const name of PACKAGES) {
        const pin = newest[name] ?? { version: "", sha256: {} };
        const version = await apt.newest(name);
        if (pin.version !== "" && pin.version !== version)
          throw new Error(`${name} is ${pin.version} on ${ARCHITECTURES[0]} and ${version} on ${architecture}`);
        newest[name] = {
          version,
          sha256: { ...pin.sha256, [architecture]: await sha256Of(await apt.download(name, version)) } as Record<
            Architecture,
            string
          >,
        };
      }
    }
    await writeFile(PINS_FILE, `${JSON.stringify(newest, undefined, 2)}\n`);
  } finally {
    await rm(work, { recursive: true });
  }
}

interface Apt {
  /** The version of a package that the sources offer. */
  newest(name: string): Promise<string>;
  /** @returns the file. */
  download(name: string, version: string): Promise<string>;
}

/**
 * Downloads the package lists of apt's sources into `folder`, so that it also finds packages of another architecture.
 */
async function openApt(folder: string, architecture: Architecture, signal: AbortSignal): Promise<Apt> {
  for (const path of ["state/lists/partial", "cache/archives/partial"]) {
    await mkdir(join(folder, path), { recursive: true });
  }
  const status = join(folder, "status");
  await writeFile(status, "");
  const settings = {
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    "APT::Sandbox::User": "root",
    "Dir::State": join(folder, "state"),
    "Dir::State::status": status,
    "Dir::Cache": join(folder, "cache"),
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const limit = limits(folder, signal);
  // Without this, apt reports success even if it reaches no mirror.
  await run("apt-get", [...options, "-q", "--error-on=any", "update"], limit);
  return {
    async newest(name) {
      const shown = await run("apt-cache", [...options, "policy", name], limit);
      const [, version] = /^ {2}Candidate: (\S+)$/m.exec(shown) ?? [];
      if (version === undefined || version === "(none)") throw new Error(`apt's sources have no package ${name}`);
      return version;
    },
    async download(name, version) {
      const next = "Debian may have replaced it: `npm run image -- --pin` pins the version that it has now";
      try {
        await run("apt-get", [...options, "-q", "download", `${name}=${version}`], limit);
      } catch (error) {
        throw new Error(`cannot fetch ${name} ${version} for ${architecture}. ${next}`, { cause: error });
      }
      const found = await run("find", [folder, "-maxdepth", "1", "-name", `${name}_*.deb`], limit);
      return found.trim();
    },
  };
}

function limits(cwd: string, signal: AbortSignal): Parameters<typeof run>[2] {
  return { cwd, env: {}, timeoutMs: DOWNLOAD_TIMEOUT_MS, signal };
}

async function sha256Of(file: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
}
