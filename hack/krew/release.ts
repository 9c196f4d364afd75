import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { createTar } from "nanotar";
import { stringify } from "yaml";
import { ARCHIVED, krewManifest, PROGRAM } from "./manifest.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface KrewFiles {
  archive: string;
  manifest: string;
}

/**
 * Packs a built agent as a kubectl plugin, and writes its manifest for krew.
 *
 * @param program the bundle that `npm run build` writes.
 * @param uri where the archive will be downloaded; its last segment is the name of the archive here.
 * @param folder where both files are written.
 * @throws Error if krew cannot download from this address, or if a file is missing.
 */
export async function releaseForKrew(program: string, uri: string, folder: string): Promise<KrewFiles> {
  const name = archiveName(uri);
  const paths: Readonly<Record<string, string>> = { [PROGRAM]: program };
  const files = await Promise.all(
    ARCHIVED.map(async (file) => ({
      name: file,
      data: new Uint8Array(await readFile(paths[file] ?? join(ROOT, file))),
      // Without times and owners, the same sources give the same archive and the same checksum.
      attrs: { mode: file === PROGRAM ? "755" : "644", uid: 0, gid: 0, mtime: 0 },
    })),
  );
  const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { version: string };
  const packed = await promisify(gzip)(createTar(files));
  const sha256 = createHash("sha256").update(packed).digest("hex");
  await mkdir(folder, { recursive: true });
  const written = { archive: join(folder, name), manifest: join(folder, "ironfence.yaml") };
  await writeFile(written.archive, packed);
  await writeFile(written.manifest, stringify(krewManifest({ version, uri, sha256 }), { lineWidth: 0 }));
  return written;
}

function archiveName(uri: string): string {
  const { protocol, username, pathname } = new URL(uri);
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  if (protocol === "https:" && username === "" && /^[\w.-]+\.tar\.gz$/.test(name)) return name;
  throw new Error(`${uri}: must be https://HOST/PATH/NAME.tar.gz, without a user`);
}
