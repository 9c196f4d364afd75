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
import { withRegistry } from "./named-image.ts";
import { releaseNotes } from "./notes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD_TIMEOUT_MS = 120_000;

export interface ReleaseOptions {
  version: string;
  /** What has changed, in Markdown. */
  changes: string;
  /** The URL from which the files will be downloaded. */
  baseUrl: string;
  /** Host and path of the registry of the image, without the name of the image. */
  registry: string;
  /** An empty folder for the files. */
  folder: string;
  progress: (line: string) => void;
}

/** Writes every file of a release. The same commit gives the same files. */
export async function makeRelease(options: ReleaseOptions, signal: AbortSignal): Promise<void> {
  const { version, changes, baseUrl, registry, folder, progress } = options;
  const write = (name: string, content: string | Buffer): Promise<void> => writeFile(join(folder, name), content);

  progress("the Helm chart and the manifests");
  const named = (text: string): string => withRegistry(text, registry, version);
  await write(`ironfence-${version}.tgz`, await packFolders({ "deploy/chart": "ironfence" }, named));
  const manifests = { deploy: `ironfence-${version}/deploy`, examples: `ironfence-${version}/examples` };
  await write(`ironfence-${version}-deploy.tar.gz`, await packFolders(manifests, named, ["deploy/chart"]));

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

/**
 * Packs folders of this repository as `helm package` packs a chart, but without times.
 *
 * @param folders the path of each folder in the archive.
 * @param edit changes the text of each file.
 * @param without sub-folders that are left out.
 */
async function packFolders(
  folders: Readonly<Record<string, string>>,
  edit: (text: string) => string,
  without: readonly string[] = [],
): Promise<Buffer> {
  const entries = Object.entries(folders).map(async ([folder, packed]) => {
    const found = await readdir(`${ROOT}${folder}`, { recursive: true, withFileTypes: true });
    const paths = found.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
    const kept = paths.filter((path) => !without.some((left) => path.startsWith(`${ROOT}${left}/`)));
    return Promise.all(
      kept.map(async (path): Promise<Entry> => {
        const content = Buffer.from(edit(await readFile(path, "utf8")));
        return { path: `${packed}/${relative(`${ROOT}${folder}`, path)}`, mode: 0o644, content };
      }),
    );
  });
  return gzipSync(tar((await Promise.all(entries)).flat()));
}

/**
 * Packs the executable with the licenses of ironfence and Node. The licenses of the packages are at the end of the
 * bundle.
 */
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
