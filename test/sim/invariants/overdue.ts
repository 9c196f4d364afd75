import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { REASONS } from "../../../src/remediator/machine/model/decision/reasons.ts";
import { parseTimeMs } from "../../../src/runtime/time.ts";
import type { Facts, Invariant } from "./facts.ts";
import { conditionOf, isFinal } from "./facts.ts";

/** How long after the deadline of its state a remediation may wait without reporting the reason. */
export const SAID_WITHIN_MS = 60_000;

/** How long after the write of its status a remediation may record the warning. */
const WARNED_WITHIN_MS = 1_000;

const WAITS: ReadonlySet<string> = new Set(REASONS);

/**
 * S14. A remediation that has begun and waits past the deadline of its state names the reason in its condition
 * Processing, and in a warning that is not older than this wait. While its status cannot be stored, a warning is
 * enough. A remediation that has not begun waits for admission or its host, which has no deadline.
 */
export const overdueIsReported: Invariant = {
  name: "S14",
  says: "what waits past its deadline is reported: in its condition, and in a warning",
  check: (facts, step) => {
    if (step.type !== "passed" || !facts.clocksAgree) return undefined;
    for (const uid of facts.present) {
      const remediation = facts.remediations.get(uid);
      const what = remediation === undefined ? undefined : unreported(facts, uid, remediation);
      if (what !== undefined) return what;
    }
    return undefined;
  },
};

function unreported(facts: Facts, uid: string, remediation: BareMetalRemediation): string | undefined {
  const { phase = "Resolving", attempt } = remediation.status ?? {};
  if (phase === "Resolving" || isFinal(remediation) || attempt === undefined) return undefined;
  const deadlineMs = parseTimeMs(attempt.deadline) ?? Infinity;
  // An agent that has just started knows no remediations before its list succeeds.
  const unlistedMs = facts.hamperedAtMs("list baremetalremediations") ?? -Infinity;
  const overdueMs = Math.min(facts.epochMs - deadlineMs, facts.atMs - Math.max(facts.calmSinceMs, unlistedMs));
  if (overdueMs <= SAID_WITHIN_MS) return undefined;
  const reason = conditionOf(remediation, "Processing")?.reason ?? "none";
  const { sinceMs, previousSinceMs } = facts.waits.get(uid) ?? { sinceMs: -Infinity, previousSinceMs: -Infinity };
  // A warning about a past hold, or about a fence that is now undone, does not explain the present wait.
  const warnedSince = (fromMs: number): string[] =>
    [...(facts.warnedAtMs.get(uid) ?? [])].flatMap(([warning, atMs]) =>
      WAITS.has(warning) && atMs >= fromMs ? [warning] : [],
    );
  if (warnedSince(sinceMs).includes(reason)) return undefined;
  // The warning follows the status with a delay, and just before another reason was reported.
  if (facts.atMs - sinceMs <= WARNED_WITHIN_MS && warnedSince(previousSinceMs).length > 0) return undefined;
  // A state whose deadline is long over may be passed again between two reported waits.
  const isPassing = !WAITS.has(reason) && facts.atMs - sinceMs <= WARNED_WITHIN_MS;
  if (isPassing && warnedSince(facts.atMs - overdueMs).length > 0) return undefined;
  // A reason that cannot be stored is in no condition.
  const unwrittenMs = facts.hamperedAtMs("patch baremetalremediations/status") ?? -Infinity;
  if (facts.atMs - unwrittenMs <= SAID_WITHIN_MS && warnedSince(sinceMs).length > 0) return undefined;
  return `${remediation.metadata.name} is in ${phase} past its deadline, with reason ${reason} and without a warning of it`;
}
