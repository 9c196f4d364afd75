/** Texts that are kept; with more of them it begins again with none. */
const KEPT_MAX = 4_096;
/** A longer text is hardly ever repeated. */
const LENGTH_MAX = 512;

const kept = new Map<string, string>();

/**
 * The same text, as one string in memory for all who ask. Thousands of objects say the same words (conditions, label
 * values, times), and the JSON parser makes a new string for each.
 */
export function sharedText<T extends string>(text: T): T {
  if (typeof text !== "string" || text.length > LENGTH_MAX) return text;
  const known = kept.get(text);
  if (known !== undefined) return known as T;
  if (kept.size >= KEPT_MAX) kept.clear();
  kept.set(text, text);
  return text;
}

/** Shares the texts of an object's own fields, in place: a copy would take the memory that is saved. */
export function shareTexts<T extends object>(object: T): T {
  const fields = object as Record<string, unknown>;
  for (const [name, value] of Object.entries(fields)) if (typeof value === "string") fields[name] = sharedText(value);
  return object;
}
