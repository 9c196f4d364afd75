import { printable } from "../../runtime/text/printable.ts";

/** How many characters of the text of an entry are kept. */
export const TEXT_MAX = 160;
/**
 * How many characters of a text are searched for words: the time of some searches grows with the square of the length.
 */
export const WORDS_MAX = 1_024;

/** Sequences that a terminal acts on (ECMA-48), with all of their parameters. */
const [ESC, CSI, BEL] = ["\u001b", "\u009b", "\u0007"];
const ESCAPES = new RegExp(`[${ESC}${CSI}](?:\\[[0-?]*[ -/]*[@-~]|\\][^${BEL}${ESC}]*|[ -~])?`, "gu");
/** Characters without a visible glyph: zero-width, private, unassigned, halves of surrogate pairs. */
const INVISIBLE = /[\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\ufe00-\ufe0f]+/gu;
/** Three or more combining marks on one character: no script needs them, and they would cover the lines above. */
const PILED_MARKS = /(\p{M}{2})\p{M}+/gu;

/**
 * Turns a text of a BMC into one line of bounded length without anything that a terminal, Markdown, HTML or a chat
 * would interpret. The text is untrusted: any user who can write to the log of the BMC chooses it.
 */
export function plainText(text: string, lengthMax = TEXT_MAX): string {
  // Cut the text first, so that a long one takes no time.
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
