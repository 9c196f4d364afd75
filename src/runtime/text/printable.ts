/**
 * Text from another system, made safe to print: without control characters, which could change what a terminal shows,
 * and without characters that change the direction of writing. A space replaces each run of them.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu, " ");
}

/**
 * The same for one line of a terminal: each such character is replaced by a question mark, so that the reader sees that
 * it was there.
 */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, "?");
}
