/**
 * An RFC 6901 pointer of `segments`, escaped, for example `pointer("metadata", "annotations", "a/b")` =
 * `/metadata/annotations/a~1b`.
 */
export function pointer(...segments: (string | number)[]): string {
  return segments.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
