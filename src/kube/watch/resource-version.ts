/**
 * Whether `a` is a later version than `b`. Resource versions of one collection are increasing decimal numbers
 * (KEP-5504). A different version that is not a number counts as later, so that no change is lost on a server with
 * another format.
 */
export function isLaterVersion(a: string, b: string): boolean {
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return a !== b;
  // Compared as text, because they may be too large for a double. They have no leading zeros, so a longer number is the
  // greater one.
  return a.length === b.length ? a > b : a.length > b.length;
}

/** Whether a view that is complete up to version `a` is complete up to `b`; false if one of them is not a number. */
export function reachesVersion(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && !isLaterVersion(b, a);
}

/**
 * Whether `a` is an earlier version than `b`. If a server returns an earlier version, it was restored from a backup.
 */
export function isEarlierVersion(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && isLaterVersion(b, a);
}
