import type { Finding } from "./lint.ts";
import { parseCode } from "./parse.ts";

export const LINE_LENGTH_MAX = 120;

/**
 * Finds lines of comments that are longer than `LINE_LENGTH_MAX`. The formatter wraps code but not comments. A line
 * without a blank at which it could be wrapped, such as a URL, has no limit.
 */
export function longCommentLines(file: string, source: string): Finding[] {
  const { comments } = parseCode(source, file);
  const lines = source.split("\n");
  const inComments = new Set<number>();
  for (const { loc } of comments ?? []) {
    if (loc == null) continue;
    for (let line = loc.start.line; line <= loc.end.line; line += 1) inComments.add(line);
  }
  const findings: Finding[] = [];
  for (const line of inComments) {
    const text = lines[line - 1] ?? "";
    if (text.length <= LINE_LENGTH_MAX || !/^\s*\S+\s+\S+\s/.test(text)) continue;
    findings.push({
      file,
      line,
      message: `A line of a comment has at most ${LINE_LENGTH_MAX} characters, and this one has ${text.length}`,
    });
  }
  return findings;
}
