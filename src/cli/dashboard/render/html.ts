import { printable } from "../../../runtime/text/printable.ts";

/** Markup that is safe to send: only `html` creates it, and `html` escapes every value. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = Html | string | number | undefined | readonly Value[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/**
 * Fills markup with values. Texts lose their control characters and are escaped for elements and for quoted attributes.
 * Use values only in these two places. `undefined` becomes empty text, and the items of a list are joined.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(withoutIndent(parts).reduce((text, part, index) => text + textOf(values[index - 1]) + part));
}

const compacted = new WeakMap<TemplateStringsArray, readonly string[]>();

/** Removes the indentation of the source, which a browser does not need. */
function withoutIndent(parts: TemplateStringsArray): readonly string[] {
  const known = compacted.get(parts) ?? parts.map((part) => part.replaceAll(/\n\s+/g, "\n"));
  compacted.set(parts, known);
  return known;
}

function textOf(value: Value): string {
  if (value === undefined) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map(textOf).join("");
  return printable(String(value)).replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
