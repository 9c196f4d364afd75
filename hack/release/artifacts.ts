import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { buildImage } from "../image/build.ts";
import { tar } from "../image/tar.ts";
import type { Entry } from "../image/tar.ts";
import { releaseForKrew } from "../krew/release.ts";
import { ARCHITECTURES, nodeLicense } from "../lib/node-program.ts";
import { run } from "../lib/run.ts";
import { buildExecutable } from "./executable.ts";
import { releaseNotes } from "./notes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD_TIMEOUT_MS = 120_000;

export interface ReleaseOptions {
  version: string;
  /** What has changed, in Markdown. */
  changes: string;
  /** Where the files will be downloaded. */
  baseUrl: string;
  /** An empty folder, which gets the files. */
  folder: string;
  progress: (line: string) => void;
}

/** Writes every file of a release. The same commit gives the same files. */
export async function makeRelease(options: ReleaseOptions, signal: AbortSignal): Promise<void> {
  const { version, changes, baseUrl, folder, progress } = options;
  const write = (name: string, content: string | Buffer): Promise<void> => writeFile(join(folder, name), content);

  progress("the Helm chart");
  await write(`ironfence-${version}.tgz`, await packChart());

  progress("the kubectl plugin and its manifest for krew");
  const bundle = `${ROOT}dist/ironfence.js`;
  await run(process.execPath, [`${ROOT}hack/build/main.ts`, bundle], { env: {}, timeoutMs: BUILD_TIMEOUT_MS, signal });
  await releaseForKrew(bundle, `${baseUrl}/kubectl-ironfence-${version}.tar.gz`, folder);

  const images: Record<string, string> = {};
  for (const architecture of ARCHITECTURES) {
    progress(`the image for ${architecture}`);
    const image = await buildImage(architecture, undefined, signal);
    images[architecture] = image.digest;
    await write(`ironfence-image-${version}-${architecture}.tar`, image.archive);
    await write(`ironfence-image-${version}-${architecture}.cdx.json`, image.billOfMaterials);

    progress(`the executable for ${architecture}`);
    const program = await buildExecutable(architecture, signal);
    const node = await nodeLicense(architecture, signal);
    await write(`ironfence-${version}-linux-${architecture}.tar.gz`, await packExecutable(program, node));
  }

  const files = (await readdir(folder)).toSorted();
  await write("NOTES.md", releaseNotes({ version, changes, images, files }));
  await write("SHA256SUMS", await checksums(folder));
}

/** Packs the chart as `helm package` does, but without the time of day. */
async function packChart(): Promise<Buffer> {
  const chart = `${ROOT}deploy/chart`;
  const found = await readdir(chart, { recursive: true, withFileTypes: true });
  const paths = found.filter((file) => file.isFile()).map((file) => relative(chart, join(file.parentPath, file.name)));
  return gzipSync(tar(await Promise.all(paths.map((path) => entry(`ironfence/${path}`, join(chart, path))))));
}

/** The executable with the licenses of ironfence and Node; those of the packages are at the end of the bundle. */
async function packExecutable(program: Buffer, nodeLicenseFile: string): Promise<Buffer> {
  const licenses = [entry("LICENSE", `${ROOT}LICENSE`), entry("LICENSE.node", nodeLicenseFile)];
  return gzipSync(tar([{ path: "ironfence", mode: 0o755, content: program }, ...(await Promise.all(licenses))]));
}

async function entry(path: string, source: string): Promise<Entry> {
  return { path, mode: 0o644, content: await readFile(source) };
}

/** In the format of sha256sum. */
async function checksums(folder: string): Promise<string> {
  const names = (await readdir(folder)).toSorted();
  const lines = names.map(async (name) => {
    const digest = createHash("sha256")
      .update(await readFile(join(folder, name)))
      .digest("hex");
    return `${digest}  ${name}\n`;
  });
  return (await Promise.all(lines)).join("");
}
