import { NAMES } from "./text-rules.ts";

// Secrets that have lines of their own: keys in PEM, blocks of YAML, elements of XML.

/**
 * A block has at most this many lines, so that one line that looks like its beginning cannot remove the rest of a log.
 */
const LINES_MAX = 200;

/** Only this many characters of a line are checked. */
const CHARACTERS_MAX = 16_384;

/** The API server puts a timestamp before each line of a log if the request asks for it. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT[\d:.]{8,24}(?:Z|[+-]\d\d:\d\d) /u;
const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/u;
const KEY_END = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY/u;
/** A line of a key in PEM, of its headers, or a blank one. */
const KEY_LINE = /^\s*(?:[A-Za-z0-9+/=]{1,128}\\?n?["']?,?|(?:Proc-Type|DEK-Info|Version|Comment|Hash):.*)?\s*$/u;
const YAML_NAME = new RegExp(`^([ \\t]*(?:- +)*)["']?[\\w.-]{0,64}?(?:${NAMES})["']?[ \\t]{0,8}:(.*)$`, "iu");
const YAML_BLOCK = /^(?:[ \t]+[&!]\S{0,64})*[ \t]+[|>][+\-\d]{0,3}[ \t]*(?:#.*)?$/u;
const NOTHING_YET = /^(?:[ \t]+[&!]\S{0,64})*[ \t]*(?:#.*)?$/u;
/** The list of users and passwords that cloud-init gives to chpasswd, in one of several forms. */
const CHPASSWD = /^([ \t]*(?:- +)?)["']?chpasswd["']?:[ \t]*(?:#.*)?$/u;
/** The prompt by which a program asks for a password. */
const PROMPT =
  /(?:^|\b(?:enter|type|new|current|sudo\]) (?:the |your |new )?)pass(?:word|phrase) for [^\n]{1,200}:[ \t]*\r?$/iu;
/** A line that ends with a name and a separator. The value may be on the next line. */
const NAME_AT_END = /\b(?:pass(?:word|wort|wd|phrase|code)|pwd|pw|secret|token)["']?[ \t]{0,8}[:=]>?[ \t]*\r?$/iu;
/** The values of a Secret in YAML: `stringData`, or base64 in `data`. */
const DATA_BEGIN = /^([ \t]*)(stringData|data):[ \t]*$/u;
const DATA_VALUE =
  /^\s+[\w.-]{1,253}:[ \t]+["']?(?:[A-Za-z0-9+/]{4}){2,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?["']?$/u;
const XML_OPEN = new RegExp(
  `<(?:[\\w.-]{1,40}:)?[\\w.-]{0,40}(?:${NAMES})[\\w.-]{0,20}(?:\\s[^<>]{0,500})?(?<!/)>\\s*$`,
  "iu",
);

type Block =
  | { kind: "key" }
  | { kind: "lines"; left: number }
  | { kind: "yaml"; indent: number }
  | { kind: "value"; indent: number; isYaml: boolean }
  | { kind: "items"; indent: number }
  | { kind: "folded"; indent: number }
  | { kind: "data"; indent: number }
  | { kind: "xml" };

/** Reads a text line by line, and finds the lines that are part of a secret that began on an earlier line. */
export class HiddenLines {
  #block: Block | undefined;
  #lines = 0;

  /**
   * @returns the secret in the line, without its timestamp and surrounding blanks; undefined if the line may be shown.
   */
  next(line: string): string | undefined {
    const body = line.slice(0, CHARACTERS_MAX).replace(TIMESTAMP, "");
    if (this.#block !== undefined) {
      const isHidden = this.#lines < LINES_MAX && this.#continues(this.#block, body);
      this.#lines += 1;
      if (isHidden) return body.trim();
    }
    this.#block = openedBy(body);
    this.#lines = 0;
    return undefined;
  }

  /** Whether this line belongs to the block. It may be the last line of the block. */
  #continues(block: Block, body: string): boolean {
    const indent = indentOf(body);
    switch (block.kind) {
      case "key":
        if (KEY_END.test(body)) {
          this.#block = undefined;
          return true;
        }
        return KEY_LINE.test(body);
      case "lines":
        block.left -= 1;
        return block.left >= 0;
      case "yaml":
        return body.trim() === "" || indent > block.indent;
      case "value":
        return this.#isValue(block, body, indent);
      case "items":
        return /^\s*- /u.test(body) && indent >= block.indent && !/^\s*- [\w.-]+:(?:\s|$)/u.test(body);
      case "folded":
        return indent > block.indent && !/^\s*(?:- |at |["']?[\w.-]+["']?:(?:\s|$))/u.test(body);
      case "data":
        return indent > block.indent && DATA_VALUE.test(body);
      case "xml":
        if (body.includes("</")) this.#block = undefined;
        return true;
      default:
        return block satisfies never;
    }
  }

  /** Whether the line is only a value. A field of YAML or a sentence is not. */
  #isValue({ indent: parent, isYaml }: { indent: number; isYaml: boolean }, body: string, indent: number): boolean {
    if (isYaml && indent >= parent && /^\s*- (?![\w.-]+:(?:\s|$))/u.test(body)) {
      this.#block = { kind: "items", indent };
      return true;
    }
    this.#block = undefined;
    const text = body.trim();
    if (/^["']?[\w.-]+["']?:(?:\s|$)/u.test(text) || text === "" || text.startsWith("[")) return false;
    return isYaml && indent > parent ? true : !/\s/u.test(text) && !text.endsWith(":");
  }
}

function openedBy(body: string): Block | undefined {
  const [, list] = CHPASSWD.exec(body) ?? [];
  if (list !== undefined) return { kind: "yaml", indent: list.length };
  const begin = KEY_BEGIN.exec(body);
  if (begin !== null) return KEY_END.test(body.slice(begin.index)) ? undefined : { kind: "key" };
  const [, count] = /\bPrivate-Lines: (\d{1,3})$/u.exec(body) ?? [];
  if (count !== undefined) return { kind: "lines", left: Number(count) };
  const [, before = "", rest] = YAML_NAME.exec(body) ?? [];
  if (rest !== undefined) {
    // The lines of the block have a deeper indent than the name, which may come after the dash of a list item.
    if (YAML_BLOCK.test(rest)) return { kind: "yaml", indent: before.length };
    if (NOTHING_YET.test(rest)) return { kind: "value", indent: before.length, isYaml: true };
  }
  if (rest !== undefined) return { kind: "folded", indent: before.length };
  const [, margin = "", data] = DATA_BEGIN.exec(body) ?? [];
  if (data !== undefined) return { kind: data === "data" ? "data" : "yaml", indent: margin.length };
  if (NAME_AT_END.test(body) || PROMPT.test(body)) return { kind: "value", indent: indentOf(body), isYaml: false };
  return XML_OPEN.test(body) ? { kind: "xml" } : undefined;
}

function indentOf(body: string): number {
  return /^[ \t]*/u.exec(body)?.[0].length ?? 0;
}
