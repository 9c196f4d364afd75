/** What was removed, as the index of the bundle counts it. */
export const SECRET_KINDS = [
  "private key",
  "authorization header",
  "user and password in a URL",
  "named secret",
  "secret of a flag",
  "password in a sentence",
  "line of a configuration",
  "token of a known form",
  "password hash",
  "encoded user and password",
  "long random text",
  "environment variable",
  "annotation of another project",
  "managedFields",
  "last applied configuration",
  "data of a Secret",
  "known secret",
] as const;
export type SecretKind = (typeof SECRET_KINDS)[number];

/**
 * While the rules run over a text, one character of a private plane of Unicode stands for each secret that was removed,
 * so that no rule takes the words of a mark for a secret.
 */
const FIRST = 0xf0000;
/** The characters of all marks, for a character class in a pattern. */
export const MARK_RANGE = String.raw`\u{F0000}-\u{F00FF}`;
const MARKS = new RegExp(`[${MARK_RANGE}]`, "gu");

export function markOf(kind: SecretKind): string {
  return String.fromCodePoint(FIRST + SECRET_KINDS.indexOf(kind));
}

/** Replaces characters in a text that would be taken for marks. */
export function withoutMarks(text: string): string {
  return text.replaceAll(MARKS, "?");
}

export function countMarks(text: string): number {
  return text.match(MARKS)?.length ?? 0;
}

/** Replaces each mark by words. @param count called for each mark. */
export function expandMarks(text: string, count: (kind: SecretKind) => void): string {
  return text.replaceAll(MARKS, (mark) => {
    const kind = SECRET_KINDS[(mark.codePointAt(0) ?? FIRST) - FIRST] ?? "known secret";
    count(kind);
    return inWords(kind);
  });
}

export function inWords(kind: SecretKind): string {
  return `[redacted: ${kind}]`;
}
