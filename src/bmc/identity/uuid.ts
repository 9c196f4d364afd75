// SMBIOS (DSP0134, 7.2.1) stores the first three fields of a UUID little-endian, and BMCs and kernels do not agree on
// which of them swaps these fields, so either order counts. Pure. UUIDs are in lower case with dashes.

/** A UUID in lower case with dashes; undefined for anything else. */
export function parseUuid(text: string | undefined): string | undefined {
  const digits = text
    ?.trim()
    .toLowerCase()
    .replace(/^urn:uuid:/, "")
    .replaceAll(/[-{}]/g, "");
  if (digits === undefined || !/^[0-9a-f]{32}$/.test(digits)) return undefined;
  return [0, 8, 12, 16, 20].map((start, i) => digits.slice(start, [8, 12, 16, 20, 32][i])).join("-");
}

export function sameUuid(a: string, b: string): boolean {
  return a === b || a === swapUuid(b);
}

/** The same text for both byte orders of a UUID, for use as a key. */
export function canonicalUuid(uuid: string): string {
  const swapped = swapUuid(uuid);
  return swapped < uuid ? swapped : uuid;
}

/** Swaps the byte order of the first three fields. */
export function swapUuid(uuid: string): string {
  const fields = uuid.split("-");
  return fields.map((field, i) => (i < 3 ? (field.match(/../g) ?? []).toReversed().join("") : field)).join("-");
}
