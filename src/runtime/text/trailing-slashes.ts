const SLASH = 0x2f;

/**
 * `text` without the slashes at its end, which are counted from there. A regular expression starts over at each slash:
 * a long text of a device would stop everything else for seconds.
 */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === SLASH) end -= 1;
  return text.slice(0, end);
}
