import { REMEDIATION_ATTEMPTS } from "../../../api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { parseDurationMs } from "../../../runtime/duration.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { Remediation } from "./remediation.ts";

// How often a node may be remediated until the agent gives up. The attempts are stored in an annotation of the health
// check, with the UID of each remediation. The annotation outlives the agent, the remediations, the node's entry in the
// status, and a Node that a reprovision deletes.

/** At most `max` remediations of one node may start within any `windowMs`. */
export interface AttemptBudget {
  max: number;
  windowMs: number;
}

/** One remediation that counts. */
export interface CountedAttempt {
  uid: string;
  startedMs: number;
}

/** The attempt budget of a health check without the annotation `ironfence.io/attempt-budget`. */
export const DEFAULT_ATTEMPT_BUDGET: AttemptBudget = { max: 10, windowMs: 86_400_000 };

/** The attempts that a health check has recorded, by node or Machine. */
export type AttemptHistory = ReadonlyMap<string, readonly CountedAttempt[]>;

/** How many attempts are kept for one node. This is also the largest possible budget. */
const ATTEMPTS_MAX = 50;
/** How long attempts are kept. This is also the longest possible window. */
const WINDOW_MAX_MS = 7 * 86_400_000;
const WINDOW_MIN_MS = 60_000;
/**
 * Kubernetes allows 256 KiB of annotations in an object, and other annotations need room, too. This is room for about
 * two thousand attempts.
 */
const HISTORY_LENGTH_MAX = 160 * 1024;
/** The most that one more attempt needs: the name of a node, a UID and a time. */
const ATTEMPT_LENGTH_MAX = 400;

/**
 * Reads `5/24h`: at most 5 in any 24 hours. Undefined if the text has another form, or if the budget exceeds what is
 * kept.
 */
export function parseAttemptBudget(text: string): AttemptBudget | undefined {
  const match = /^([1-9][0-9]?)\/(.+)$/.exec(text);
  const max = Number(match?.[1]);
  const windowMs = parseDurationMs(match?.[2] ?? "");
  if (windowMs === undefined || !(max <= ATTEMPTS_MAX)) return undefined;
  return windowMs >= WINDOW_MIN_MS && windowMs <= WINDOW_MAX_MS ? { max, windowMs } : undefined;
}

/**
 * The attempts that count for a node, oldest first: the recorded ones and those of the existing remediations. A
 * remediation that ended without a power order does not count, even if it is recorded, because it did nothing to the
 * node.
 */
export function countAttempts(
  remembered: readonly CountedAttempt[],
  remediations: readonly Remediation[],
  nowMs: number,
): CountedAttempt[] {
  if (remembered.length === 0 && remediations.length === 0) return [];
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

/** Whether the recorded attempts of a node differ from its remediations. */
export function mustRecord(
  remembered: readonly CountedAttempt[],
  remediations: readonly Remediation[],
  attempts: readonly CountedAttempt[],
): boolean {
  const recorded = new Set(remembered.map(({ uid }) => uid));
  const counted = new Set(attempts.map(({ uid }) => uid));
  // Attempts that are too old are removed with the next change. They alone cause no write.
  return remediations.some(({ uid }) => recorded.has(uid) !== counted.has(uid));
}

/** When the next attempt may start. The time is in the past if it may start now. */
export function attemptAllowedAtMs(budget: AttemptBudget, attempts: readonly CountedAttempt[]): number {
  const oldest = attempts.at(-budget.max);
  return oldest === undefined ? -Infinity : oldest.startedMs + budget.windowMs;
}

/**
 * Whether the remediation has ended or is being deleted, and its remediator reports that it never sent a power order.
 * Other kinds do not report this, so they count.
 */
function isFree({ object, succeeded, terminating, powerOrdered }: Remediation): boolean {
  const reportsOrders = object.kind === BARE_METAL_REMEDIATIONS.kind && object.apiVersion.startsWith("ironfence.io/");
  return reportsOrders && (terminating || succeeded === "False" || succeeded === "True") && !powerOrdered;
}

/**
 * Reads the attempts that a health check remembers. A user may have edited the annotation, so entries that cannot be
 * parsed are left out.
 */
export function readAttempts({ metadata }: KubeObject): AttemptHistory {
  const text = metadata.annotations?.[REMEDIATION_ATTEMPTS];
  const history = new Map<string, CountedAttempt[]>();
  if (text === undefined) return history;
  for (const [nodeName, list] of parseHistory(text)) history.set(nodeName, list.split(",").flatMap(parseAttempt));
  return history;
}

/** Whether there may be no room for another attempt without dropping older ones. */
export function isHistoryFull({ metadata }: KubeObject): boolean {
  return (metadata.annotations?.[REMEDIATION_ATTEMPTS]?.length ?? 0) > HISTORY_LENGTH_MAX - ATTEMPT_LENGTH_MAX;
}

/**
 * The value of the annotation with these changes; undefined if no attempt is left. If not all attempts fit, the oldest
 * are left out.
 */
export function writeAttempts(history: AttemptHistory, changes: AttemptHistory, nowMs: number): string | undefined {
  const entries = [...new Map([...history, ...changes])]
    .flatMap(([nodeName, attempts]) => attempts.map((attempt) => ({ nodeName, ...attempt })))
    .filter(({ startedMs }) => nowMs - startedMs < WINDOW_MAX_MS)
    .sort((a, b) => b.startedMs - a.startedMs);
  const lists = new Map<string, string[]>();
  let length = 2;
  for (const { nodeName, uid, startedMs } of entries) {
    const text = `${uid}@${toTime(startedMs)}`;
    const list = lists.get(nodeName) ?? [];
    // Each attempt needs a comma. The first one of a node also needs the name of the node, four quotes and a colon.
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
