const SLASH = 0x2f;

/**
 * `text` without the slashes at its end. A regular expression would start again at each slash, and a long text from a
 * device would block the agent for seconds.
 */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === SLASH) end -= 1;
  return text.slice(0, end);
}
