/** Deeper parts are not compared, because a server may nest them to any depth. */
const DEPTH_MAX = 8;

/**
 * Replaces the parts of `next` that equal those of `previous` by the latter, in place, so that memory holds them once.
 * The JSON parser makes new strings for each version of an object, while indexes still refer to names, UIDs and other
 * parts of earlier versions.
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
    // Also for equal texts: they may be two strings in memory.
    if (before !== undefined && isSame(parts[name], before, depth)) parts[name] = before;
    else isEqual = false;
  }
  return isEqual;
}

function isSame(part: unknown, before: unknown, depth: number): boolean {
  if (part === before || typeof part !== "object" || typeof before !== "object") return part === before;
  return part !== null && before !== null && depth > 0 && replaceEqual(part, before, depth - 1);
}
