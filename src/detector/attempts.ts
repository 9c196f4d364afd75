import { REMEDIATION_ATTEMPTS } from "../api/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../api/bare-metal-remediation.ts";
import type { Node } from "../api/core.ts";
import { parseDurationMs } from "../runtime/duration.ts";
import { parseTimeMs, toTime } from "../runtime/time.ts";
import type { Remediation } from "./remediation.ts";

// How often a node may be remediated before it is left for people. What counts stands on the node, signed with the UID of
// each remediation: it outlives the agent, the remediations and the node's entry in the health check's status.

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

/** What holds where a health check says nothing. */
export const DEFAULT_ATTEMPT_BUDGET: AttemptBudget = { max: 10, windowMs: 86_400_000 };

/** Attempts that a node remembers: more cannot be asked for. */
const ATTEMPTS_MAX = 50;
/** How long a node remembers them: no window may be longer. */
const WINDOW_MAX_MS = 7 * 86_400_000;
const WINDOW_MIN_MS = 60_000;

/** Reads `5/24h`: at most 5 in any 24 hours. Undefined where it is no such thing, or beyond what a node remembers. */
export function parseAttemptBudget(text: string): AttemptBudget | undefined {
  const match = /^([1-9][0-9]?)\/(.+)$/.exec(text);
  const max = Number(match?.[1]);
  const windowMs = parseDurationMs(match?.[2] ?? "");
  if (windowMs === undefined || !(max <= ATTEMPTS_MAX)) return undefined;
  return windowMs >= WINDOW_MIN_MS && windowMs <= WINDOW_MAX_MS ? { max, windowMs } : undefined;
}

/**
 * The attempts that count for a node, oldest first: those that it remembers and those of the remediations that are there.
 * One that ended without a power order is free, whatever is remembered: it cost the node nothing.
 */
export function countAttempts(node: Node, remediations: readonly Remediation[], nowMs: number): CountedAttempt[] {
  const free = new Set(remediations.filter(isFree).map(({ uid }) => uid));
  const attempts = new Map(readAttempts(node).map((attempt) => [attempt.uid, attempt]));
  for (const { uid, createdMs } of remediations) {
    if (!attempts.has(uid)) attempts.set(uid, { uid, startedMs: createdMs ?? nowMs });
  }
  return [...attempts.values()]
    .filter(({ uid, startedMs }) => !free.has(uid) && nowMs - startedMs < WINDOW_MAX_MS)
    .sort((a, b) => a.startedMs - b.startedMs)
    .slice(-ATTEMPTS_MAX);
}

/** What the node's annotation must say; undefined where it says so already. An empty text takes it off. */
export function attemptsToRecord(
  node: Node,
  remediations: readonly Remediation[],
  attempts: readonly CountedAttempt[],
): string | undefined {
  const recorded = new Set(readAttempts(node).map(({ uid }) => uid));
  const counted = new Set(attempts.map(({ uid }) => uid));
  // What has become too old is left to the next change: no write for that alone.
  const differs = remediations.some(({ uid }) => recorded.has(uid) !== counted.has(uid));
  return differs ? attempts.map(({ uid, startedMs }) => `${uid}@${toTime(startedMs)}`).join(",") : undefined;
}

/** When one more attempt may start: in the past where it may now. */
export function attemptAllowedAtMs(budget: AttemptBudget, attempts: readonly CountedAttempt[]): number {
  const oldest = attempts.at(-budget.max);
  return oldest === undefined ? -Infinity : oldest.startedMs + budget.windowMs;
}

/** Whether it is over, and its remediator tells that it never sent a power order. Others' kinds do not tell: they count. */
function isFree({ object, succeeded, terminating, powerOrdered }: Remediation): boolean {
  const tells = object.kind === BARE_METAL_REMEDIATIONS.kind && object.apiVersion.startsWith("ironfence.io/");
  return tells && (terminating || succeeded === "False" || succeeded === "True") && !powerOrdered;
}

// People may have edited it: what cannot be read is left out.
function readAttempts(node: Node): CountedAttempt[] {
  const text = node.metadata.annotations?.[REMEDIATION_ATTEMPTS] ?? "";
  return text.split(",").flatMap((entry) => {
    const [uid = "", started] = entry.split("@");
    const startedMs = parseTimeMs(started);
    return uid === "" || startedMs === undefined ? [] : [{ uid, startedMs }];
  });
}
