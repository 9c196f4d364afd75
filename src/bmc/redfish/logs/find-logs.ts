import type { BoundedReads } from "./bounded-reads.ts";
import { EMPTY, linksAt, arrayAt, objectAt, stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { plainText } from "../../evidence/plain-text.ts";
import { isRecord } from "../../../runtime/record.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

/** A log whose entries can be read. */
export interface FoundLog {
  name: string;
  entries: string;
  /** The entries that the log itself contains; undefined if it contains none. */
  inlined: JsonObject | undefined;
}

const LOGS_MAX = 3;
/** How many members of a collection of logs are considered. */
const LISTED_MAX = 64;
/** Names of logs with events of the hardware, the more useful ones first. */
const USEFUL = [/^(?:sel|iml|log1|systemevent)/i, /fault|platform|active|standard|event/i, /^(?:lclog|iel|system)/i];
/** Names of logs of user actions and firmware, and of logs with large dumps. */
const USELESS =
  /audit|security|^sl$|dump|post-?code|journal|debug|telemetry|crash|hostlogger|maintenance|remote|^sol|tracing/i;

/**
 * Finds the logs in collections of LogServices, the most useful first. Each log is read when the caller needs it,
 * because a slow BMC may have time for only one.
 */
export async function* findLogs(reads: BoundedReads, collections: readonly string[]): AsyncGenerator<FoundLog> {
  const services: { name: string; path: string; body: JsonObject }[] = [];
  for (const collection of new Set(collections)) {
    const body = (await reads.get(collection))?.body ?? EMPTY;
    for (const member of (arrayAt(body, "Members") ?? []).slice(0, LISTED_MAX)) {
      const body = isRecord(member) ? member : EMPTY;
      const path = linksAt({ member }, "member")[0];
      if (path === undefined) continue;
      const name = plainText(stringAt(body, "Id") ?? lastOf(path), 40);
      if (!USELESS.test(name) && !services.some((known) => known.path === path)) services.push({ name, path, body });
    }
  }
  const ranked = services.toSorted((a, b) => usefulness(a.name) - usefulness(b.name)).slice(0, LOGS_MAX);
  for (const { name, path, body } of ranked) {
    const whole = Object.hasOwn(body, "Entries") ? body : ((await reads.get(path))?.body ?? EMPTY);
    const entries = linksAt(whole, "Entries")[0];
    const inlined =
      arrayAt(objectAt(whole, "Entries"), "Members") === undefined ? undefined : objectAt(whole, "Entries");
    if (entries !== undefined || inlined !== undefined) yield { name, entries: entries ?? "", inlined };
  }
}

function usefulness(name: string): number {
  const at = USEFUL.findIndex((pattern) => pattern.test(name));
  return at === -1 ? USEFUL.length : at;
}

/** The last segment of a path. */
export function lastOf(path: string): string {
  return withoutTrailingSlashes(path).split("/").at(-1) ?? "";
}
