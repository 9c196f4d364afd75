import { printable } from "../../runtime/text/printable.ts";

/** The longest text of an entry that is kept. */
export const TEXT_MAX = 160;
/** How much of a text is searched for words: some searches take time with the square of its length. */
export const WORDS_MAX = 1_024;

/** Sequences that a terminal acts on (ECMA-48), with all of their parameters. */
const [ESC, CSI, BEL] = ["\u001b", "\u009b", "\u0007"];
const ESCAPES = new RegExp(`[${ESC}${CSI}](?:\\[[0-?]*[ -/]*[@-~]|\\][^${BEL}${ESC}]*|[ -~])?`, "gu");
/** Characters without a picture of their own: zero-width, private, unassigned, halves of surrogate pairs. */
const INVISIBLE = /[\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\ufe00-\ufe0f]+/gu;
/** More marks on one character than any script needs would cover the lines above. */
const PILED_MARKS = /(\p{M}{2})\p{M}+/gu;

/**
 * A text of a BMC as data: one line of bounded length, without anything that a terminal, Markdown, HTML or a chat would
 * act on. A user who can write to the log of a BMC decides what it says.
 */
export function plainText(text: string, lengthMax = TEXT_MAX): string {
  // A text is cut first, so that a long one costs no time.
  const visible = printable(text.slice(0, lengthMax * 8).replaceAll(ESCAPES, " "))
    .replaceAll(INVISIBLE, "")
    .replaceAll(PILED_MARKS, "$1")
    .replaceAll(/[[<{]/g, "(")
    .replaceAll(/[\]>}]/g, ")")
    .replaceAll(/[`"]/g, "'")
    .replaceAll(/[*|~\\$]/g, " ")
    .replaceAll("@", " at ")
    .replaceAll("://", ": //")
    .replaceAll(/\s+/gu, " ")
    .replaceAll(/^[\s#>+=-]+|[\s.,;]+$/gu, "");
  if (visible.length <= lengthMax) return visible;
  return `${visible.slice(0, lengthMax - 1).replace(/[\ud800-\udbff]$/u, "")}…`;
}
