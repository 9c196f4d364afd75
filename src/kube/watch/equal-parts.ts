/** Deeper parts are not compared, because a server may nest them to any depth. */
const DEPTH_MAX = 8;

/**
 * Replaces the parts of `next` that equal those of `previous` by these, in place. Indexes and other memories keep
 * names, UIDs and other parts of earlier versions of an object, and the JSON parser makes new ones for each version.
 */
export function keepEqualParts(next: object, previous: object): void {
  replaceEqual(next, previous, DEPTH_MAX);
}

/** @returns whether both are equal, as far as they are compared. */
function replaceEqual(next: object, previous: object, depth: number): boolean {
  const [parts, known] = [next as Record<string, unknown>, previous as Record<string, unknown>];
  const names = Object.keys(parts);
  let isEqual = Array.isArray(next) === Array.isArray(previous) && names.length === Object.keys(known).length;
  for (const name of names) {
    const before = Object.hasOwn(known, name) ? known[name] : undefined;
    // Equal texts may be two strings in memory.
    if (before !== undefined && isSame(parts[name], before, depth)) parts[name] = before;
    else isEqual = false;
  }
  return isEqual;
}

function isSame(part: unknown, before: unknown, depth: number): boolean {
  if (part === before || typeof part !== "object" || typeof before !== "object") return part === before;
  return part !== null && before !== null && depth > 0 && replaceEqual(part, before, depth - 1);
}
