import { readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/**
 * V8's coverage report of a script: the ranges of each function, an inner range after its outer one, and how often each
 * ran.
 */
const Coverage = z.object({
  result: z.array(
    z.object({
      url: z.string(),
      functions: z.array(
        z.object({
          ranges: z.array(z.object({ startOffset: z.number(), endOffset: z.number(), count: z.number() })),
        }),
      ),
    }),
  ),
});

interface Piece {
  start: number;
  end: number;
  ran: boolean;
}

/**
 * The code of `src` that a test file runs. Node strips types without moving code, so V8's offsets are valid in the
 * source.
 */
export class Reach {
  /** The files of each process that ran. */
  readonly #processes: readonly ReadonlyMap<string, readonly Piece[]>[];

  private constructor(processes: readonly ReadonlyMap<string, readonly Piece[]>[]) {
    this.#processes = processes;
  }

  /**
   * @param coverageFolder where Node has written its coverage (`NODE_V8_COVERAGE`).
   * @param root the tree whose code ran.
   */
  static async read(coverageFolder: string, root: string): Promise<Reach> {
    const names = await readdir(coverageFolder);
    const reports = names.map(async (name) => {
      const { result } = Coverage.parse(JSON.parse(await readFile(join(coverageFolder, name), "utf8")));
      return new Map(
        result.flatMap(({ url, functions }) => {
          const file = url.startsWith("file://") ? relative(root, fileURLToPath(url)) : "";
          if (!file.startsWith("src/")) return [];
          const pieces = functions.flatMap(({ ranges }) =>
            ranges.map(({ startOffset, endOffset, count }) => ({ start: startOffset, end: endOffset, ran: count > 0 })),
          );
          return [[file, pieces] as const];
        }),
      );
    });
    return new Reach(await Promise.all(reports));
  }

  /** Whether the code at the offset has run. */
  has(file: string, offset: number): boolean {
    return this.#processes.some((files) => {
      let inner: Piece | undefined;
      for (const piece of files.get(file) ?? []) {
        const isAround = piece.start <= offset && offset < piece.end;
        if (isAround && (inner === undefined || piece.end - piece.start <= inner.end - inner.start)) inner = piece;
      }
      return inner?.ran === true;
    });
  }
}
