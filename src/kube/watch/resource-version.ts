/**
 * Whether `a` is a later version than `b`. Resource versions of one collection are decimal numbers that grow
 * (KEP-5504); what is not such a number counts as later, so that nothing is lost on a server that counts otherwise.
 */
export function isLaterVersion(a: string, b: string): boolean {
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return a !== b;
  // Without leading zeros a longer number is the greater one; they may be too large for a double.
  return a.length === b.length ? a > b : a.length > b.length;
}

/** Whether what shows everything up to `a` shows everything up to `b`; never if either is not such a number. */
export function reachesVersion(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && !isLaterVersion(b, a);
}

/** Whether `a` is an earlier version than `b`, so that the server has gone back: it was restored from a backup. */
export function isEarlierVersion(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && isLaterVersion(b, a);
}
