import { open, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { CommandFailure } from "../errors/failures.ts";

/** Only the owner may read the bundle, because it contains names of nodes and addresses of BMCs. */
const OWNER_ONLY = 0o600;

/** Packs files into the tar.gz of one folder. */
export async function packFiles(
  folder: string,
  files: readonly { path: string; text: string }[],
  nowMs: number,
): Promise<Uint8Array> {
  // Loaded on demand, since the agent never needs it.
  const { createTar } = await import("nanotar");
  const attrs = { mode: "600", uid: 0, gid: 0, mtime: nowMs };
  const tar = createTar(files.map(({ path, text }) => ({ name: `${folder}/${path}`, data: text, attrs })));
  return promisify(gzip)(tar);
}

/**
 * Writes a new file. If that fails, no part of the file is left.
 *
 * @throws CommandFailure
 */
export async function writeArchive(path: string, bytes: Uint8Array): Promise<void> {
  const failure = (cause: unknown): CommandFailure => {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new CommandFailure("BundleNotWritten", `cannot write ${path}: ${why}: name another file with --file`, {
      cause,
    });
  };
  // `wx` neither follows a symbolic link nor replaces a file.
  const file = await open(path, "wx", OWNER_ONLY).catch((cause: unknown) => {
    throw failure(cause);
  });
  try {
    await file.writeFile(bytes);
  } catch (cause) {
    await rm(path, { force: true });
    throw failure(cause);
  } finally {
    await file.close();
  }
}
