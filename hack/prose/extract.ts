import { parseCode } from "./parse.ts";

/** A piece of prose, and the line of its file on which it begins. */
export interface Piece {
  line: number;
  text: string;
}

interface Token {
  /** A comment has no label. */
  type: { label?: string };
  value?: unknown;
  start: number;
  end: number;
  loc: { start: { line: number } };
}

/** Replaces a value in a template. The rules ignore code. */
const VALUE = "`value`";

/** The comments of a source file and its strings of several words: messages, descriptions, help and JSX text. */
export function proseOfCode(source: string, file: string): Piece[] {
  const { comments, tokens } = parseCode(source, file);
  const blocks = (comments ?? []).map(({ value, loc }): Piece => ({
    line: loc?.start.line ?? 1,
    text: value.replaceAll(/^[ \t]*\*? ?/gm, ""),
  }));
  return [...joinLineComments(blocks, source), ...stringsOf((tokens ?? []) as Token[], source)].sort(
    (a, b) => a.line - b.line,
  );
}

/** Joins consecutive line comments into one text. */
function joinLineComments(pieces: readonly Piece[], source: string): Piece[] {
  const lines = source.split("\n");
  const joined: Piece[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    const isWholeLine = /^\s*\/\//.test(lines[piece.line - 1] ?? "");
    if (isWholeLine && last !== undefined && last.line + last.text.split("\n").length === piece.line) {
      last.text += `\n${piece.text}`;
    } else joined.push({ ...piece });
  }
  return joined;
}

/** String literals, and the parts of templates, with `VALUE` for each value. */
function stringsOf(tokens: readonly Token[], source: string): Piece[] {
  const pieces: Piece[] = [];
  for (const { type, value, start, end, loc } of tokens) {
    if (type.label === "string" || type.label === "jsxText") add(pieces, loc.start.line, String(value));
    else if (type.label === "...`") add(pieces, loc.start.line, source.slice(start + 1, end - 1));
    else if (type.label === "...${") add(pieces, loc.start.line, source.slice(start + 1, end - 2) + VALUE);
  }
  return pieces;
}

function add(pieces: Piece[], line: number, text: string): void {
  if (/[A-Za-z]\S* +\S/.test(text)) pieces.push({ line, text });
}

/** The comments of a YAML file. */
export function proseOfYaml(source: string): Piece[] {
  const pieces: Piece[] = [];
  for (const [index, line] of source.split("\n").entries()) {
    const comment = /(?:^|\s)# ?(.*)$/.exec(line)?.[1];
    if (comment === undefined) continue;
    const last = pieces.at(-1);
    if (last !== undefined && last.line + last.text.split("\n").length === index + 1) last.text += `\n${comment}`;
    else pieces.push({ line: index + 1, text: comment });
  }
  return pieces;
}
