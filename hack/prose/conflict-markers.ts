import type { Finding } from "./lint.ts";

/**
 * A line that git writes around a conflict. In a comment or on a page, a formatter may have moved it. A line of `=`
 * underlines a heading in Markdown, so it does not count.
 */
const MARKER = /^[\s*/#]*(?:<{7}|>{7}|\|{7})(?:\s|$)/;

/** Finds conflict markers, which no compiler and no formatter finds in comments and on pages. */
export function conflictMarkers(file: string, source: string): Finding[] {
  return source.split("\n").flatMap((text, index) => {
    return MARKER.test(text) ? [{ file, line: index + 1, message: "This is a conflict marker of git" }] : [];
  });
}
