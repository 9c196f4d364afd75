import { printable } from "../../../runtime/text/printable.ts";
import { isRecord } from "../../../runtime/record.ts";
import { BmcError } from "../../interface/errors.ts";

/** The deepest nesting that is parsed. Real resources stay below 12. */
export const JSON_DEPTH_MAX = 32;

/** A JSON object from a BMC: every value is read by name and checked for its type. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const EMPTY: JsonObject = Object.freeze({});

/**
 * Parses a JSON object. `JSON.parse` makes `__proto__` an own property like any other, and the functions below read
 * only own properties, so a hostile name has no effect.
 *
 * @throws BmcError BadResponse if the text is not JSON, not an object, or nested deeper than `JSON_DEPTH_MAX`.
 */
export function parseJsonObject(text: string, what: string): JsonObject {
  if (nestsDeeperThan(text, JSON_DEPTH_MAX)) {
    throw new BmcError("BadResponse", `${what}: the answer is nested deeper than ${JSON_DEPTH_MAX} levels`);
  }
  let value: unknown;
  try {
    value = JSON.parse(withoutPadding(text));
  } catch (cause) {
    throw new BmcError("BadResponse", `${what}: the answer is not JSON`, { cause });
  }
  if (!isRecord(value)) throw new BmcError("BadResponse", `${what}: the answer is not a JSON object`);
  return value;
}

/** Removes the byte order mark that some BMCs put before their JSON, and the zeros that some put after it. */
function withoutPadding(text: string): string {
  let end = text.length;
  while (text.charCodeAt(end - 1) === 0) end -= 1;
  return text.slice(text.startsWith("\uFEFF") ? 1 : 0, end);
}

/** The object at `name`; empty if there is none, so that reads can be chained. */
export function objectAt(parent: JsonObject, name: string): JsonObject {
  const value = own(parent, name);
  return isRecord(value) ? value : EMPTY;
}

/** The string at `name`, if it is one. */
export function stringAt(parent: JsonObject, name: string): string | undefined {
  const value = own(parent, name);
  return typeof value === "string" ? printable(value) : undefined;
}

/** The array at `name`, if it is one. */
export function arrayAt(parent: JsonObject, name: string): readonly unknown[] | undefined {
  const value = own(parent, name);
  return Array.isArray(value) ? value : undefined;
}

/** The strings of the array at `name`; undefined if there is no array. */
export function stringsAt(parent: JsonObject, name: string): readonly string[] | undefined {
  return arrayAt(parent, name)?.filter((item) => typeof item === "string");
}

/** The `@odata.id`s of the array of links at `name`. Some services give plain paths, or one link instead of a list. */
export function linksAt(parent: JsonObject, name: string): readonly string[] {
  const value = own(parent, name);
  return (isRecord(value) ? [value] : (arrayAt(parent, name) ?? [])).flatMap((item) => {
    const link = isRecord(item) ? stringAt(item, "@odata.id") : item;
    return typeof link === "string" && link !== "" ? link : [];
  });
}

/** Whether the object itself has `name`, whatever its value. */
export function has(parent: JsonObject, name: string): boolean {
  return Object.hasOwn(parent, name);
}

function own(parent: JsonObject, name: string): unknown {
  return Object.hasOwn(parent, name) ? parent[name] : undefined;
}

/** Counts brackets outside strings, before the parser allocates anything for them. */
function nestsDeeperThan(text: string, depthMax: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (inString) {
      if (char === BACKSLASH) at += 1;
      else if (char === QUOTE) inString = false;
    } else if (char === QUOTE) {
      inString = true;
    } else if (char === OPEN_BRACE || char === OPEN_BRACKET) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) {
      depth -= 1;
    }
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
