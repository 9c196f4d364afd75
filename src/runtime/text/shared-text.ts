/** The most texts that are kept. When they are this many, all are dropped. */
const KEPT_MAX = 4_096;
/** Longer texts are not kept, because they are hardly ever repeated. */
const LENGTH_MAX = 512;

const kept = new Map<string, string>();

/**
 * Returns one string in memory for all equal texts. Thousands of objects contain the same conditions, label values and
 * times, and the JSON parser makes a new string for each.
 */
export function sharedText<T extends string>(text: T): T {
  if (typeof text !== "string" || text.length > LENGTH_MAX) return text;
  const known = kept.get(text);
  if (known !== undefined) return known as T;
  if (kept.size >= KEPT_MAX) kept.clear();
  kept.set(text, text);
  return text;
}

/** Shares the texts of an object's own fields, in place: a copy would need more memory than is saved. */
export function shareTexts<T extends object>(object: T): T {
  const fields = object as Record<string, unknown>;
  for (const [name, value] of Object.entries(fields)) if (typeof value === "string") fields[name] = sharedText(value);
  return object;
}
