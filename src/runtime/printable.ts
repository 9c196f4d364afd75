/**
 * Text of others for people to read: without control characters, by which it could rewrite what a terminal shows, and without
 * marks that turn the direction of writing. A blank stands in the place of each run of them.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu, " ");
}
