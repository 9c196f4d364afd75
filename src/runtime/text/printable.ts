/**
 * Text from another system, made safe to print: without control characters, which could change what a terminal shows,
 * without characters that change the direction of writing, and without halves of surrogate pairs, which the API server
 * stores as other characters. A space replaces each run of them.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu, " ");
}

/**
 * The same for one line of a terminal, with a question mark for each such character, so that the reader sees that it
 * was there. Single direction marks (U+061C, U+200E, U+200F) stay.
 */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, "?");
}
