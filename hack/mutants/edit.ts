import type { Place } from "./source-texts.ts";

/** A piece of a source file, and its replacement in a mutant. */
export interface Edit extends Place {
  replacement: string;
}

/** The source with the edit applied. */
export function applyEdit(source: string, { start, end, replacement }: Edit): string {
  return source.slice(0, start) + replacement + source.slice(end);
}
