import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A piece of a source file: from one offset up to another. */
export interface Place {
  file: string;
  start: number;
  end: number;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Finds a text in source files, even if it has moved to another file or was formatted differently. */
export class SourceTexts {
  readonly #sources: ReadonlyMap<string, string>;

  constructor(sources: ReadonlyMap<string, string>) {
    this.#sources = sources;
  }

  /** Reads all of `src`. */
  static read(): SourceTexts {
    const files = globSync("src/**/*.ts", { cwd: ROOT });
    return new SourceTexts(new Map(files.map((file) => [file, readFileSync(join(ROOT, file), "utf8")])));
  }

  /** Every place where the text occurs. */
  placesOf(text: string): readonly Place[] {
    const words = text.match(/\w+|[^\s\w]/g) ?? [];
    const pattern = patternOf(words);
    const longest = words.toSorted((a, b) => b.length - a.length)[0] ?? "";
    return [...this.#sources]
      .filter(([, source]) => longest !== "" && source.includes(longest))
      .flatMap(([file, source]) =>
        Array.from(source.matchAll(pattern), ({ 0: { length }, index }) => ({
          file,
          start: index,
          end: index + length,
        })),
      );
  }
}

/** Matches words and signs with any white space between them, and with or without a comma before a closing bracket. */
function patternOf(words: readonly string[]): RegExp {
  const parts = words.flatMap((word, index) => {
    const next = words[index + 1];
    if (word === "," && (next === undefined || isClosing(next))) return [];
    return isClosing(word) ? `(?:,\\s*)?${escape(word)}` : escape(word);
  });
  const end = words.at(-1) === "," ? "(?:\\s*,|(?=\\s*[)\\]}]))" : "";
  return new RegExp(parts.join("\\s*") + end, "g");
}

function isClosing(sign: string): boolean {
  return sign === ")" || sign === "]" || sign === "}";
}

function escape(word: string): string {
  return word.replaceAll(/[$()*+.?[\\\]^{|}/-]/g, "\\$&");
}
