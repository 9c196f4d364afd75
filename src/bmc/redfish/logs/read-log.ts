import type { BoundedReads, ReadResource } from "./bounded-reads.ts";
import type { FoundLog } from "./find-logs.ts";
import { lastOf } from "./find-logs.ts";
import { parseEntry } from "./parse-entry.ts";
import { linksAt, arrayAt, stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { parseBmcTime } from "../../evidence/bmc-time.ts";
import type { BmcLogEntry } from "../../evidence/model.ts";
import { isRecord } from "../../../runtime/record.ts";

/** How many of the newest entries of a log are read. */
export const ENTRIES_MAX = 16;
/** How many entries that are only links are read, one by one. */
const LINKED_MAX = 8;
/** How many pages are followed towards the end of a log whose service does not support `$skip`. */
const PAGES_MAX = 4;
/** More entries than any log has. */
const BEYOND_END = 1_000_000;
/** How much of the answer to a question for the number of entries is read. */
const TOTAL_BYTES_MAX = 2_048;
/** The path of an entry that ends with its number. */
const NUMBERED = /^(.*\/)(\d{1,9})(\/?)$/;
/** How many characters at the end of an id are searched for its number. A longer number would be rounded. */
const NUMBER_DIGITS_MAX = 15;

/**
 * Reads the newest entries of a log. Services number, sort and page them in every way: newest or oldest first, in one
 * page or many, as resources or as links, with or without `$top` and `$skip` (DSP0266, query parameters).
 */
export async function readLog(reads: BoundedReads, log: FoundLog, zone: string | undefined): Promise<BmcLogEntry[]> {
  const members = await newestMembers(reads, log);
  const whole: JsonObject[] = [];
  let linked = 0;
  for (const member of members) {
    if (!isLink(member)) whole.push(member);
    else if (linked < LINKED_MAX && !reads.isSpent) {
      linked += 1;
      const [path = ""] = linksAt({ member }, "member");
      const read = await reads.get(path);
      if (read?.status === 200) whole.push(read.body);
    }
  }
  return whole.flatMap((body) => parseEntry(log.name, body, zone) ?? []);
}

/** The newest entries of a log, newest first if their order is known. */
async function newestMembers(reads: BoundedReads, log: FoundLog): Promise<JsonObject[]> {
  if (log.inlined !== undefined && (membersOf(log.inlined).length > 0 || log.entries === "")) {
    return newest(membersOf(log.inlined));
  }
  const asked = await reads.get(withQuery(log.entries, `$top=${ENTRIES_MAX}`));
  if (asked === undefined) return [];
  // A service without paging refuses the parameter.
  const first = asked.status === 200 ? asked : await readPage(reads, log.entries);
  if (first === undefined) return [];
  const known = membersOf(first.body);
  const total = totalOf(first.body);
  const next = nextOf(first.body);
  const isAll = next === undefined && !first.isCut && (total === undefined || total <= known.length);
  if (isAll || isNewestFirst(known) === true) return newest(known);
  const tail = await readTail(reads, log.entries, { known, total, next, isCut: first.isCut });
  if (tail.length === 0) reads.note(`the newest entries of log ${log.name} were not reached`);
  if (isNewestFirst([...known, ...tail]) !== undefined) return newest([...known, ...tail]);
  // Nothing shows which end is the newer one, so half of each is taken.
  const half = ENTRIES_MAX / 2;
  return [...tail.slice(-half).toReversed(), ...known.slice(0, half)];
}

interface FirstPage {
  known: readonly JsonObject[];
  total: number | undefined;
  next: string | undefined;
  /** Whether only the beginning of the first page was read. */
  isCut: boolean;
}

/** The entries at the end of a log whose first page is known. */
async function readTail(reads: BoundedReads, entries: string, first: FirstPage): Promise<JsonObject[]> {
  const { known, next, isCut } = first;
  const total = first.total ?? (isCut ? await readTotal(reads, entries, known.length) : undefined);
  if (total === undefined ? isCut : total > known.length) {
    const skip = Math.max((total ?? 0) - ENTRIES_MAX, known.length, 1);
    const page = await readPage(reads, withQuery(entries, `$skip=${skip}&$top=${ENTRIES_MAX}`));
    const members = page === undefined ? [] : membersOf(page.body);
    // A service that ignores $skip gives the first page again.
    if (members.length > 0 && keyOf(members[0]) !== keyOf(known[0])) {
      if (total === undefined && members.length >= ENTRIES_MAX)
        reads.note("a log does not say how many entries it has");
      return members;
    }
  }
  const isNear = next !== undefined && (total ?? 0) <= known.length * (1 + PAGES_MAX);
  const numbered = isNear ? [] : await readByNumber(reads, known, total);
  if (numbered.length > 0) return numbered;
  let last: JsonObject[] = [];
  let link = next;
  const seen = new Set<string>();
  for (let pages = 0; link !== undefined && pages < PAGES_MAX && !seen.has(link) && !reads.isSpent; pages += 1) {
    seen.add(link);
    const page = await readPage(reads, link);
    if (page === undefined) break;
    last = [...last, ...membersOf(page.body)].slice(-ENTRIES_MAX);
    link = nextOf(page.body);
  }
  if (link !== undefined) reads.note("a log has more pages than are read");
  return last;
}

/**
 * How many entries a log has, if its first page was cut off before the number. A page beyond the end has no entries,
 * so its answer is short. A service that ignores `$skip` gives the first page again, of which little is read.
 */
async function readTotal(reads: BoundedReads, entries: string, known: number): Promise<number | undefined> {
  const page = await readPage(reads, withQuery(entries, `$skip=${BEYOND_END}&$top=1`), TOTAL_BYTES_MAX);
  if (page === undefined || page.isCut || membersOf(page.body).length > 0) return undefined;
  const total = totalOf(page.body);
  // Some services report the number of entries on the page instead.
  return total === undefined || total <= known ? undefined : total;
}

/**
 * The last entries of a log whose service supports no paging: links to them, because their numbers follow from those of
 * the first entries. No entries if that is not so.
 */
async function readByNumber(
  reads: BoundedReads,
  known: readonly JsonObject[],
  total: number | undefined,
): Promise<JsonObject[]> {
  const paths = known.map((member) => NUMBERED.exec(stringAt(member, "@odata.id") ?? ""));
  const [, before = "", digits = "", after = ""] = paths[0] ?? [];
  const start = Number(digits);
  const isInOrder = paths.every((path, index) => path?.[1] === before && Number(path[2]) === start + index);
  if (total === undefined || paths.length < 2 || !isInOrder) return [];
  const at = (number: number): string => `${before}${String(number).padStart(digits.length, "0")}${after}`;
  const end = start + total - 1;
  const newest = await readPage(reads, at(end));
  if (newest === undefined) return [];
  const length = Math.min(LINKED_MAX, total - known.length - 1);
  const earlier = Array.from({ length }, (_, index) => ({ "@odata.id": at(end - length + index) }));
  return [...earlier, newest.body];
}

async function readPage(reads: BoundedReads, path: string, bytesMax?: number): Promise<ReadResource | undefined> {
  const page = await reads.get(path, bytesMax);
  return page?.status === 200 ? page : undefined;
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

function nextOf(body: JsonObject): string | undefined {
  return (
    stringAt(body, "Members@odata.nextLink") ??
    stringAt(body, "@odata.nextLink") ??
    linksAt(body, "Members@odata.nextLink")[0]
  );
}

function totalOf(body: JsonObject): number | undefined {
  const count = body["Members@odata.count"];
  return Number.isSafeInteger(count) ? Number(count) : undefined;
}

/** The members of a page. Some services give plain paths instead of links. */
function membersOf(body: JsonObject): JsonObject[] {
  const members = arrayAt(body, "Members") ?? arrayAt(body, "Items") ?? [];
  return members.flatMap((member): JsonObject[] => {
    if (isRecord(member)) return [member];
    return typeof member === "string" ? [{ "@odata.id": member }] : [];
  });
}

function isLink(member: JsonObject): boolean {
  return Object.keys(member).every((name) => name.startsWith("@odata."));
}

function keyOf(member: JsonObject | undefined): string {
  return member === undefined ? "" : (stringAt(member, "@odata.id") ?? JSON.stringify(member));
}

/** The values that show the order of entries: their time, and the number in their id. */
function orderOf(member: JsonObject): { time: number | undefined; number: number | undefined } {
  const time = parseBmcTime(member["Created"]) ?? parseBmcTime(member["EventTimestamp"]);
  const id = stringAt(member, "Id") ?? lastOf(stringAt(member, "@odata.id") ?? "");
  const digits = /\d{1,15}$/.exec(id.slice(-NUMBER_DIGITS_MAX))?.[0];
  return { time, number: digits === undefined ? undefined : Number(digits) };
}

/** Whether the first entries are the newest; undefined if that is not known. */
export function isNewestFirst(members: readonly JsonObject[]): boolean | undefined {
  const [first, last] = [members[0], members.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const [a, b] = [orderOf(first), orderOf(last)];
  if (a.time !== undefined && b.time !== undefined && a.time !== b.time) return a.time > b.time;
  if (a.number !== undefined && b.number !== undefined && a.number !== b.number) return a.number > b.number;
  return undefined;
}

function newest(members: readonly JsonObject[]): JsonObject[] {
  const unique = [...new Map(members.map((member) => [keyOf(member), member])).values()];
  const sorted = isNewestFirst(unique) === false ? unique.toReversed() : unique;
  return sorted
    .map((member) => ({ member, ...orderOf(member) }))
    .toSorted((a, b) => (a.time !== undefined && b.time !== undefined ? b.time - a.time : 0))
    .slice(0, ENTRIES_MAX)
    .map(({ member }) => member);
}
