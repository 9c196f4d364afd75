import type { Finding } from "./lint.ts";
import { parseCode } from "./parse.ts";

/** The maximum length of a test name. A longer name is that of two tests, or explains what the body shows. */
const NAME_LENGTH_MAX = 160;

/** Words with which no subject begins. A name that begins with one of them continues the name of its group. */
const NO_SUBJECT = new Set([
  ..."is are was were be has have had does do did can cannot could may might must should will would".split(" "),
  ..."that which whose who with and or but not then so also".split(" "),
  ..."acts adds admits appears asks backs becomes begins bounds breaks brings builds comes".split(" "),
  ..."connects counts creates cuts decides deletes draws drops ends ensures exits fails fences finds follows".split(
    " ",
  ),
  ..."gets gives goes holds ignores keeps knows leaves lets lists logs looks loses makes needs never".split(" "),
  ..."passes powers prints proves puts reads recovers refuses rejects removes repeats replaces reports".split(" "),
  ..."restores retries returns says sees sends serves sets shows skips starts stays stops stores takes".split(" "),
  ..."tries turns undoes uses waits warns withstands writes".split(" "),
  ..."after again at before by for from if in it none nor of on once under unless until when where".split(" "),
  ..."while with without".split(" "),
]);

/** Phrases that make a name hard to read, and what to write instead. */
const CLUMSY: readonly [RegExp, string][] = [
  [/\bof which (?!it is)/, "name the thing and say what it does"],
  [/\bmakes no (?!sense|request)/, "say what does not happen"],
  [/\b(?:is|are|was|counts? as) none(?:$|[,:;]| in a | after that)/, "“does not count”"],
  [/\ball the same\b/, "“still”, “although”"],
  [/\bgoes on (?:when|if)\b/, "“continues”"],
  [/\bcosts? nothing\b/, "say what is not called"],
  [/^whatever was\b/, "begin with the subject"],
  [/\bover and over\b/, "“again”, “repeatedly”"],
  [/\b(?:counts?|asks?|waits?|used) for nothing\b/, "“does not count”, “makes no request”"],
  [/, too$/, "“also”"],
  [/\bat its word\b/, "say what the agent does"],
  [/\bto who (?:knows|know)\b/, "name who"],
  [/\b(?:has|have) let go of\b/, "“detached”, “released”"],
  [/\bin the way of\b/, "“prevents”, “obstacle”"],
  [/\bthe news of\b/, "“event”, “change”"],
];

interface Token {
  /** A comment has no label. */
  type: { label?: string };
  value?: unknown;
  start: number;
  end: number;
  loc: { start: { line: number } };
}

interface TestName {
  line: number;
  name: string;
}

/** The names of the tests of a file, as written: with `${…}` for values. */
export function testNames(source: string, file: string): TestName[] {
  const { tokens } = parseCode(source, file);
  const code = ((tokens ?? []) as Token[]).filter(({ type }) => type.label !== undefined);
  const names: TestName[] = [];
  for (const [index, token] of code.entries()) {
    const [previous, paren, first] = [code[index - 1], code[index + 1], code[index + 2]];
    if (token.type.label !== "name" || !["it", "test"].includes(String(token.value))) continue;
    if (previous?.type.label === "." || paren?.type.label !== "(" || first === undefined) continue;
    const name = literal(code, index + 2, source);
    if (name !== undefined) names.push({ line: first.loc.start.line, name });
  }
  return names;
}

/** The string or template that begins at a token; undefined if the name is computed. */
function literal(code: readonly Token[], index: number, source: string): string | undefined {
  const first = code[index];
  if (first?.type.label === "string") return String(first.value);
  if (first?.type.label === "...`") return source.slice(first.start + 1, first.end - 1);
  if (first?.type.label !== "...${") return undefined;
  const last = code.slice(index).find(({ type }) => type.label === "...`");
  return last === undefined ? undefined : source.slice(first.start + 1, last.end - 1);
}

/** Why a name is not a sentence that is understood alone. `${…}` in it replaces a value. */
export function problemsOfName(name: string): string[] {
  const problems: string[] = [];
  const [firstWord = ""] = name.split(/[\s,:]/);
  if (NO_SUBJECT.has(firstWord)) problems.push(`begins with “${firstWord}”, without a subject`);
  if (name.trim().split(/\s+/).length < 3) problems.push("is not a sentence: name the subject and what it does");
  for (const [phrase, instead] of CLUMSY) {
    const [found] = phrase.exec(name) ?? [];
    if (found !== undefined) problems.push(`is hard to read at “${found.trim()}”: ${instead}`);
  }
  return problems;
}

/**
 * Checks the names of the tests in a file. Each must be a sentence of its own: "a host that is off is not powered off".
 *
 * @param known the file of each name so far, to find names that occur twice.
 */
export function lintTestNames(file: string, source: string, known = new Map<string, string>()): Finding[] {
  const findings: Finding[] = [];
  for (const { line, name } of testNames(source, file)) {
    const refuse = (message: string): void =>
      void findings.push({ file, line, message: `test name ${message}: “${name}”` });
    for (const problem of problemsOfName(name)) refuse(problem);
    if (name.length > NAME_LENGTH_MAX) refuse(`has ${name.length} characters, at most ${NAME_LENGTH_MAX} are allowed`);
    const other = known.get(name);
    if (other !== undefined) refuse(`is also in ${other}`);
    known.set(name, file);
  }
  return findings;
}
