/**
 * Text from elsewhere, made safe to print: without control characters, which could change what a terminal shows, and without
 * marks that change the direction of writing. A blank replaces each run of them.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu, " ");
}
