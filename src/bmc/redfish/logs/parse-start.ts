import { EMPTY, JSON_DEPTH_MAX, parseJsonObject } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { BmcError } from "../../interface/errors.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/**
 * Parses the beginning of a JSON object that was not read completely: everything up to the last complete value, or up
 * to brackets that are nested too deep. The log of a service without paging is often longer than what is read.
 *
 * @returns an empty object if nothing is complete.
 */
export function parseStart(text: string, what: string): JsonObject {
  const closing: string[] = [];
  let cut: { at: number; depth: number } | undefined;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inString = false;
      continue;
    }
    const char = text[at];
    if (code === QUOTE) inString = true;
    else if (char === "{" || char === "[") {
      if (closing.length === JSON_DEPTH_MAX) break;
      closing.push(char === "{" ? "}" : "]");
    } else if (char === "}" || char === "]") {
      closing.pop();
      if (closing.length === 0) return parseOrEmpty(text.slice(0, at + 1), what);
      cut = { at: at + 1, depth: closing.length };
    } else if (code === COMMA) cut = { at, depth: closing.length };
  }
  if (cut === undefined) return EMPTY;
  // After the cut, brackets were only opened, so the first ones in the list are those that were open there.
  const closers = closing.slice(0, cut.depth).toReversed().join("");
  return parseOrEmpty(text.slice(0, cut.at) + closers, what);
}

function parseOrEmpty(text: string, what: string): JsonObject {
  try {
    return parseJsonObject(text, what);
  } catch (error) {
    if (error instanceof BmcError) return EMPTY;
    throw error;
  }
}
