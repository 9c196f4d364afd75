import type { ParseResult } from "@babel/parser";
import { parse } from "@babel/parser";

/** Whether the file is TypeScript or JavaScript, with or without JSX. */
export function isCode(file: string): boolean {
  return /\.(?:tsx?|mjs)$/.test(file);
}

/** The tokens and comments of a file. */
export function parseCode(source: string, file: string): ParseResult {
  const plugins = file.endsWith(".tsx") ? (["typescript", "jsx"] as const) : (["typescript"] as const);
  return parse(source, { sourceType: "module", plugins: [...plugins], tokens: true });
}
