import { REMEDIATION_ATTEMPTS } from "../../../api/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/bare-metal-remediation.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { parseDurationMs } from "../../../runtime/duration.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { Remediation } from "./remediation.ts";

// How often a node may be remediated before the agent gives up on it. The attempts are stored in an annotation of the health
// check, with the UID of each remediation. The annotation outlives the agent, the remediations, the node's entry in the
// status, and a Node that a reprovision deletes.

/** So many remediations of one node may start in any stretch of time that is so long. */
export interface AttemptBudget {
  max: number;
  windowMs: number;
}

/** One remediation that counts. */
export interface CountedAttempt {
  uid: string;
  startedMs: number;
}

/** The default. */
export const DEFAULT_ATTEMPT_BUDGET: AttemptBudget = { max: 10, windowMs: 86_400_000 };

/** The attempts that a health check remembers, by node or machine. */
export type AttemptHistory = ReadonlyMap<string, readonly CountedAttempt[]>;

/** Attempts that are remembered of one node: more cannot be asked for. */
const ATTEMPTS_MAX = 50;
/** How long they are remembered: no window may be longer. */
const WINDOW_MAX_MS = 7 * 86_400_000;
const WINDOW_MIN_MS = 60_000;
/** Kubernetes allows 256 KiB of annotations an object, and others want room too. Some two thousand attempts. */
const HISTORY_LENGTH_MAX = 160 * 1024;
/** What one more attempt may take there: a node's name, a UID and a time. */
const ATTEMPT_LENGTH_MAX = 400;

/** Reads `5/24h`: at most 5 in any 24 hours. Undefined if it is no such thing, or beyond what is remembered. */
export function parseAttemptBudget(text: string): AttemptBudget | undefined {
  const match = /^([1-9][0-9]?)\/(.+)$/.exec(text);
  const max = Number(match?.[1]);
  const windowMs = parseDurationMs(match?.[2] ?? "");
  if (windowMs === undefined || !(max <= ATTEMPTS_MAX)) return undefined;
  return windowMs >= WINDOW_MIN_MS && windowMs <= WINDOW_MAX_MS ? { max, windowMs } : undefined;
}

/**
 * The attempts that count for a node, oldest first: those that are remembered and those of the remediations that are there.
 * One that ended without a power order is free, whatever is remembered: it cost the node nothing.
 */
export function countAttempts(
  remembered: readonly CountedAttempt[],
  remediations: readonly Remediation[],
  nowMs: number,
): CountedAttempt[] {
  const free = new Set(remediations.filter(isFree).map(({ uid }) => uid));
  const attempts = new Map(remembered.map((attempt) => [attempt.uid, attempt]));
  for (const { uid, createdMs } of remediations) {
    if (!attempts.has(uid)) attempts.set(uid, { uid, startedMs: createdMs ?? nowMs });
  }
  return [...attempts.values()]
    .filter(({ uid, startedMs }) => !free.has(uid) && nowMs - startedMs < WINDOW_MAX_MS)
    .sort((a, b) => a.startedMs - b.startedMs)
    .slice(-ATTEMPTS_MAX);
}

/** Whether what is remembered of a node no longer fits its remediations. */
export function mustRecord(
  remembered: readonly CountedAttempt[],
  remediations: readonly Remediation[],
  attempts: readonly CountedAttempt[],
): boolean {
  const recorded = new Set(remembered.map(({ uid }) => uid));
  const counted = new Set(attempts.map(({ uid }) => uid));
  // What has become too old is left to the next change: no write for that alone.
  return remediations.some(({ uid }) => recorded.has(uid) !== counted.has(uid));
}

/** When one more attempt may start: in the past if it may now. */
export function attemptAllowedAtMs(budget: AttemptBudget, attempts: readonly CountedAttempt[]): number {
  const oldest = attempts.at(-budget.max);
  return oldest === undefined ? -Infinity : oldest.startedMs + budget.windowMs;
}

/** Whether it has finished, and its remediator reports that it never sent a power order. Other kinds do not report this, so they count. */
function isFree({ object, succeeded, terminating, powerOrdered }: Remediation): boolean {
  const reportsOrders = object.kind === BARE_METAL_REMEDIATIONS.kind && object.apiVersion.startsWith("ironfence.io/");
  return reportsOrders && (terminating || succeeded === "False" || succeeded === "True") && !powerOrdered;
}

/** Reads the attempts that a health check remembers. A user may have edited the annotation: what cannot be read is left out. */
export function readAttempts({ metadata }: KubeObject): AttemptHistory {
  const text = metadata.annotations?.[REMEDIATION_ATTEMPTS];
  const book = new Map<string, CountedAttempt[]>();
  if (text === undefined) return book;
  for (const [nodeName, list] of parseHistory(text)) book.set(nodeName, list.split(",").flatMap(parseAttempt));
  return book;
}

/** Whether there may be no room for one more attempt, unless older ones are forgotten. */
export function isHistoryFull({ metadata }: KubeObject): boolean {
  return (metadata.annotations?.[REMEDIATION_ATTEMPTS]?.length ?? 0) > HISTORY_LENGTH_MAX - ATTEMPT_LENGTH_MAX;
}

/**
 * What the annotation is to say once these nodes' attempts are what is given; undefined if nothing is left to remember.
 * The oldest are left out if all do not fit.
 */
export function writeAttempts(book: AttemptHistory, changes: AttemptHistory, nowMs: number): string | undefined {
  const entries = [...new Map([...book, ...changes])]
    .flatMap(([nodeName, attempts]) => attempts.map((attempt) => ({ nodeName, ...attempt })))
    .filter(({ startedMs }) => nowMs - startedMs < WINDOW_MAX_MS)
    .sort((a, b) => b.startedMs - a.startedMs);
  const lists = new Map<string, string[]>();
  let length = 2;
  for (const { nodeName, uid, startedMs } of entries) {
    const text = `${uid}@${toTime(startedMs)}`;
    const list = lists.get(nodeName) ?? [];
    // With a comma; the first one of a node also with what that costs in JSON: its name, four quotes and a colon.
    length += text.length + 1 + (list.length === 0 ? nodeName.length + 5 : 0);
    if (length > HISTORY_LENGTH_MAX) break;
    lists.set(nodeName, [text, ...list]);
  }
  if (lists.size === 0) return undefined;
  return JSON.stringify(Object.fromEntries([...lists].map(([nodeName, list]) => [nodeName, list.join(",")])));
}

function parseHistory(text: string): [nodeName: string, list: string][] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null) return [];
    return Object.entries(parsed).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  } catch {
    return [];
  }
}

function parseAttempt(entry: string): CountedAttempt[] {
  const [uid = "", started] = entry.trim().split("@");
  const startedMs = parseTimeMs(started);
  return uid === "" || startedMs === undefined ? [] : [{ uid, startedMs }];
}
