import { Instrumenter } from "@stryker-mutator/instrumenter";
import type { Edit } from "../edit.ts";

/** A small change of the code that a tool has derived from the syntax tree. */
export interface GeneratedMutant {
  /** The changed line, counted from 1. */
  line: number;
  /** The kind of change, as StrykerJS names it. */
  kind: string;
  edit: Edit;
}

/**
 * Changes of strings are left out, because most strings are messages. If a string is compared, the comparison itself is
 * changed.
 */
const LEFT_OUT = ["StringLiteral"];

const SILENT = {
  isTraceEnabled: () => false,
  isDebugEnabled: () => false,
  isInfoEnabled: () => false,
  isWarnEnabled: () => false,
  isErrorEnabled: () => false,
  isFatalEnabled: () => false,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  fatal: () => undefined,
};

/** Every mutant that StrykerJS derives from the source. */
export async function generateMutants(file: string, source: string): Promise<readonly GeneratedMutant[]> {
  const { mutants } = await new Instrumenter(SILENT).instrument([{ name: file, content: source, mutate: true }], {
    plugins: [],
    ignorers: [],
    excludedMutations: LEFT_OUT,
  });
  const offsetOf = offsetsOf(source);
  const found = new Map<string, GeneratedMutant>();
  for (const { location, mutatorName, replacement, status } of mutants) {
    if (status === "Ignored") continue;
    const edit = { file, start: offsetOf(location.start), end: offsetOf(location.end), replacement };
    const key = `${edit.start} ${edit.end} ${replacement}`;
    if (!found.has(key)) found.set(key, { line: location.start.line + 1, kind: mutatorName, edit });
  }
  return [...found.values()];
}

/** Offsets in a source for lines and columns that count from 0. */
function offsetsOf(source: string): (position: { line: number; column: number }) => number {
  const starts = [0, ...Array.from(source.matchAll(/\n/g), ({ index }) => index + 1)];
  return ({ line, column }) => (starts[line] ?? source.length) + column;
}
