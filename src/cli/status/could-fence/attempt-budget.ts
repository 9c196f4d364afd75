import type { KubeObject } from "../../../kube/resource.ts";
import type { AttemptBudget, CountedAttempt } from "../../../detector/shared/model/attempts.ts";
import { attemptAllowedAtMs, countAttempts, readAttempts } from "../../../detector/shared/model/attempts.ts";
import { toTime } from "../../../runtime/time.ts";

/**
 * Judges whether a node or a Machine was remediated so often that a health check starts nothing more for it. Attempts
 * of one health check also count for the others.
 */
export function budgetJudge(
  checks: readonly KubeObject[],
  nowMs: number,
): (name: string, budget: AttemptBudget) => { reason: string; message: string } | undefined {
  const remembered = new Map<string, CountedAttempt[]>();
  for (const check of checks) {
    for (const [name, attempts] of readAttempts(check)) {
      remembered.set(name, [...(remembered.get(name) ?? []), ...attempts]);
    }
  }
  return (name, budget) => {
    const attempts = countAttempts(remembered.get(name) ?? [], [], nowMs);
    const allowedMs = attemptAllowedAtMs(budget, attempts);
    if (allowedMs <= nowMs) return undefined;
    const message = `it was remediated ${budget.max} times, so the health check does nothing for it until ${toTime(allowedMs)}: find out why it does not stay healthy`;
    return { reason: "AttemptBudgetSpent", message };
  };
}
