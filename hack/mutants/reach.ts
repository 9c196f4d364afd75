import { readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/**
 * What V8 reports of a script: the pieces of each function, an inner one after the one around it, and how often each
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
 * Which code of `src` a test file runs. Node strips types without moving anything, so that V8's offsets are the
 * source's.
 */
export class Reach {
  /** For each process that ran: its files. */
  readonly #processes: readonly ReadonlyMap<string, readonly Piece[]>[];

  private constructor(processes: readonly ReadonlyMap<string, readonly Piece[]>[]) {
    this.#processes = processes;
  }

  /**
   * @param coverageFolder where Node has written what ran (`NODE_V8_COVERAGE`).
   * @param root the tree that ran.
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

  /** Whether what stands at the offset has run. */
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
