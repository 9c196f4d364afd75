/** A text that `parseBlockYaml` cannot read. The message has the number of the line, and none of its text. */
export class BlockYamlError extends Error {
  override readonly name = "BlockYamlError";
}

/** How deeply mappings and lists may be nested. A kubeconfig needs five levels. */
const DEPTH_MAX = 16;

const KEY = /^([A-Za-z0-9_./-]+|"[^"\\]*"|'[^']*') *:(?: +(.*))?$/;
/** An unquoted scalar cannot begin with one of these. They begin YAML syntax that is not supported here. */
const INDICATORS = "[]{},&*!|>%@`\"'#?";

interface Line {
  number: number;
  indent: number;
  /** Without the spaces at its beginning and end. */
  text: string;
}

/**
 * Parses YAML as Kubernetes tools write it: mappings and lists in block form, scalars on one line, quoted or not, and
 * block scalars. It refuses flow collections with content, anchors, tags, explicit keys and several documents. It is
 * for untrusted text, so its time is proportional to the length of the text. Scalars become strings, except for whole
 * numbers, booleans and null.
 *
 * @throws BlockYamlError
 */
export function parseBlockYaml(text: string): unknown {
  const reader = new Reader(text);
  const value = reader.block(0, 0);
  reader.expectEnd();
  return value;
}

class Reader {
  readonly #lines: Line[];
  #next = 0;

  constructor(text: string) {
    this.#lines = text.split(/\r?\n/).map((line, index) => {
      const indent = line.length - line.trimStart().length;
      if (line.slice(0, indent).includes("\t")) throw failure(index + 1, "is indented by a tab");
      return { number: index + 1, indent, text: line.trim() };
    });
    if (this.#peek()?.text === "---") this.#next += 1;
  }

  expectEnd(): void {
    const line = this.#peek();
    if (line !== undefined) throw failure(line.number, "is not expected here");
  }

  /**
   * Parses the mapping, list or scalar that begins on the next line; null if there is no line that is indented by at
   * least `indentMin`.
   */
  block(indentMin: number, depth: number): unknown {
    const line = this.#peek();
    if (line === undefined || line.indent < indentMin) return null;
    if (depth > DEPTH_MAX) throw failure(line.number, "is nested too deeply");
    if (isItem(line)) return this.#list(line.indent, depth);
    if (KEY.test(line.text)) return this.#mapping(line.indent, depth);
    this.#next += 1;
    return scalarOf(line.text, line.number);
  }

  #list(indent: number, depth: number): unknown[] {
    const items: unknown[] = [];
    for (let line = this.#peek(); line?.indent === indent && isItem(line); line = this.#peek()) {
      const rest = line.text.slice(1).trimStart();
      if (rest === "" || rest.startsWith("#")) {
        this.#next += 1;
        items.push(this.block(indent + 1, depth + 1));
        continue;
      }
      // The text after the dash keeps its column, because the lines below it align with that column.
      this.#lines[this.#next] = { ...line, indent: indent + line.text.length - rest.length, text: rest };
      items.push(this.block(indent + 1, depth + 1));
    }
    return items;
  }

  #mapping(indent: number, depth: number): Record<string, unknown> {
    // Without a prototype, so that keys such as `__proto__` have no meaning.
    const fields: Record<string, unknown> = Object.create(null);
    for (let line = this.#peek(); line?.indent === indent && !isItem(line); line = this.#peek()) {
      const [, quoted = "", value = ""] = KEY.exec(line.text) ?? [];
      if (quoted === "") throw failure(line.number, "has no key");
      const key = /^["']/.test(quoted) ? quoted.slice(1, -1) : quoted;
      if (Object.hasOwn(fields, key)) throw failure(line.number, "repeats a key");
      this.#next += 1;
      fields[key] = this.#valueOf(line, value, depth);
    }
    return fields;
  }

  #valueOf(line: Line, value: string, depth: number): unknown {
    if (/^[|>][+-]?$/.test(value)) return this.#blockScalar(line.indent, value.startsWith(">") ? " " : "\n");
    if (value !== "" && !value.startsWith("#")) return scalarOf(value, line.number);
    const below = this.#peek();
    // A list may have the same indentation as its key.
    const isListOf = below?.indent === line.indent && isItem(below);
    return this.block(isListOf ? line.indent : line.indent + 1, depth + 1);
  }

  /** Joins the lines that are indented by more than `indent`, without their indentation. */
  #blockScalar(indent: number, glue: string): string {
    const parts: string[] = [];
    for (; ; this.#next += 1) {
      const line = this.#lines[this.#next];
      if (line === undefined || (line.text !== "" && line.indent <= indent)) break;
      parts.push(line.text);
    }
    return parts.join(glue).trim();
  }

  /** The next line that is neither empty nor a comment. */
  #peek(): Line | undefined {
    for (; ; this.#next += 1) {
      const line = this.#lines[this.#next];
      if (line === undefined || (line.text !== "" && !line.text.startsWith("#"))) return line;
    }
  }
}

function isItem({ text }: Line): boolean {
  return text === "-" || text.startsWith("- ");
}

function scalarOf(text: string, line: number): unknown {
  if (text.startsWith('"') || text.startsWith("'")) return quotedOf(text, line);
  if (/^\{\s*\}$/.test(text)) return {};
  if (/^\[\s*\]$/.test(text)) return [];
  const comment = text.indexOf(" #");
  const plain = (comment < 0 ? text : text.slice(0, comment)).trimEnd();
  if (INDICATORS.includes(plain[0] ?? "") || plain.includes(": ") || plain.endsWith(":")) {
    throw failure(line, "uses YAML syntax that is not supported: use JSON, or YAML as kubectl writes it");
  }
  if (plain === "true" || plain === "false") return plain === "true";
  if (/^[-+]?\d+$/.test(plain)) return Number(plain);
  return plain === "null" || plain === "~" ? null : plain;
}

function quotedOf(text: string, line: number): string {
  const double = /^("(?:[^"\\]|\\.)*")\s*(?:#.*)?$/.exec(text)?.[1];
  const single = /^'((?:[^']|'')*)'\s*(?:#.*)?$/.exec(text)?.[1];
  if (single !== undefined) return single.replaceAll("''", "'");
  try {
    const value: unknown = JSON.parse(double ?? "");
    if (typeof value === "string") return value;
  } catch {
    // Throws below, without the parser's message, which quotes the text.
  }
  throw failure(line, "has a quoted text that cannot be read");
}

function failure(line: number, what: string): BlockYamlError {
  return new BlockYamlError(`line ${line} ${what}`);
}
