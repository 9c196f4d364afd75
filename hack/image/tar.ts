// Packs a tar archive that depends only on its entries: not on times, owners or the order of a file system. nanotar is
// not used because it writes no symbolic links.

/** A file, a symbolic link or a folder of an archive. */
export type Entry =
  | { path: string; mode: number; content: Buffer }
  | { path: string; target: string }
  | { path: string; isFolder: true };

const BLOCK = 512;
/** Maximum length of a name in the ustar header, in bytes. */
const NAME_MAX = 100;

/**
 * Packs entries in the order of their paths, with their folders before them. @throws Error for a path that is too long.
 */
export function tar(entries: readonly Entry[]): Buffer {
  const all = new Map<string, Entry>();
  for (const entry of entries) {
    for (const folder of foldersOf(entry.path)) all.set(folder, { path: folder, isFolder: true });
  }
  for (const entry of entries) all.set(entry.path, entry);
  const sorted = [...all.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return Buffer.concat([...sorted.flatMap(blocksOf), Buffer.alloc(2 * BLOCK)]);
}

function foldersOf(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function blocksOf(entry: Entry): Buffer[] {
  if ("isFolder" in entry) return [header(`${entry.path}/`, { mode: 0o755, type: "5" })];
  if ("target" in entry) return [header(entry.path, { mode: 0o777, type: "2", target: entry.target })];
  const { content, mode } = entry;
  const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
  return [header(entry.path, { mode, type: "0", size: content.length }), content, padding];
}

interface Fields {
  mode: number;
  type: string;
  size?: number;
  target?: string;
}

/** A header in the format ustar. Everything belongs to root and is from 1970. */
function header(name: string, { mode, type, size = 0, target = "" }: Fields): Buffer {
  if (Buffer.byteLength(name) > NAME_MAX || Buffer.byteLength(target) > NAME_MAX) throw new Error(`too long: ${name}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  block.write(name, 0);
  block.write(octal(mode, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(0, 12), 100);
  block.write(" ".repeat(8) + type + target, 148);
  block.write("ustar\u000000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
