import { overBudget } from "./read-budget.ts";

/** The deepest JSON that is read from a workload cluster, the managed fields of a Pod, has about 15 levels. */
const DEPTH_MAX = 64;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * Counts the values in a JSON text before it is parsed. A text of 4 MiB may contain half a million fields, which take
 * seconds and hundreds of megabytes to parse, while the same length in long strings takes milliseconds. Commas and
 * opening brackets are counted; a text has at most one value more than that.
 *
 * @throws KubeError OverBudget
 */
export function checkStructure(what: string, text: string, valuesMax: number): void {
  let values = 0;
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case QUOTE:
        index = endOfString(text, index);
        break;
      case COMMA:
        values += 1;
        break;
      case OPENING_BRACKET:
      case OPENING_BRACE:
        values += 1;
        depth += 1;
        if (depth > DEPTH_MAX) throw overBudget(what, `more than ${DEPTH_MAX} levels`);
        break;
      case CLOSING_BRACKET:
      case CLOSING_BRACE:
        depth -= 1;
        break;
      default:
    }
    if (values > valuesMax) throw overBudget(what, `more than ${valuesMax} values`);
  }
}

/** The index of the quote that ends the string that begins at `start`; the length of the text if there is none. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) return index;
    if (code === BACKSLASH) index += 1;
  }
  return text.length;
}
