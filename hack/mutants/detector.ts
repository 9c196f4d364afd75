import { BUDGET } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/detector");

export const DETECTOR_MUTANTS: readonly Mutant[] = [
  mutant(
    "remediation-news-unheard",
    "remediation",
    "what bears on a health check in a remediation is heard at once",
    "return !isDeepStrictEqual(unversioned(before), unversioned(after));",
    "return false;",
    "test/unit/detector/remediation.test.ts",
  ),
  // The health budget.
  mutant(
    "budget-off-by-one",
    "budget",
    "nothing starts below minHealthy",
    "holds: census.healthy >= required }",
    "holds: census.healthy + 1 >= required }",
    BUDGET,
  ),
  mutant(
    "under-way-counts-healthy",
    "budget",
    "a node with a remediation left does not count as healthy",
    'health.state !== "healthy" || remediations.length > 0);',
    'health.state !== "healthy");',
    BUDGET,
    "test/unit/detector/budget-property.test.ts",
  ),
  mutant(
    "late-view-believed",
    "view-freshness",
    "nodes are counted by a watched view only while it is proven to show how things are",
    "if (!this.isFresh(nowMs)) this.#isProven = false;",
    "if (!this.isFresh(nowMs)) this.#isProven = nowMs > this.#heardMs;",
    "test/unit/detector/view-freshness.test.ts",
  ),
  mutant(
    "live-list-ignored",
    "budget",
    "nothing starts that a live list of the nodes forbids",
    "judgeThreshold(threshold, live).holds ? seen : live",
    "judgeThreshold(threshold, seen).holds ? seen : live",
    BUDGET,
  ),
  mutant(
    "storm-without-cooldown",
    "storm",
    "after a storm nothing starts before its cooldown has passed",
    "sinceMs + cooldownMs <= nowMs ?",
    "sinceMs <= nowMs ?",
    "test/unit/detector/storm.test.ts",
  ),
];
