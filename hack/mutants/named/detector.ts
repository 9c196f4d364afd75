import { BUDGET } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/detector");

export const DETECTOR_MUTANTS: readonly Mutant[] = [
  mutant(
    "remediation-news-unheard",
    "shared/model/remediation",
    "a change of a remediation that concerns a health check wakes the health check at once",
    "return !isDeepStrictEqual(unversioned(before), unversioned(after));",
    "return false;",
    "test/unit/detector/shared/remediation.test.ts",
  ),
  // The health budget.
  mutant(
    "budget-off-by-one",
    "nodes/decide/threshold",
    "nothing starts below minHealthy",
    "isMet: counts.healthy >= required }",
    "isMet: counts.healthy + 1 >= required }",
    BUDGET,
  ),
  mutant(
    "under-way-counts-healthy",
    "nodes/decide/threshold",
    "a node with a remediation left does not count as healthy",
    'health.state !== "healthy" || remediations.length > 0);',
    'health.state !== "healthy");',
    BUDGET,
    "test/unit/detector/nodes/threshold-property.test.ts",
  ),
  mutant(
    "late-view-believed",
    "shared/views/view-freshness",
    "nodes are counted by a watched view only while it is proven to show how things are",
    "if (!this.isFresh(nowMs)) this.#isProven = false;",
    "if (!this.isFresh(nowMs)) this.#isProven = nowMs > this.#lastEventMs;",
    "test/unit/detector/shared/view-freshness.test.ts",
  ),
  mutant(
    "live-list-ignored",
    "nodes/decide/threshold",
    "nothing starts that a live list of the nodes forbids",
    "judgeThreshold(threshold, live).isMet ? watched : live",
    "judgeThreshold(threshold, watched).isMet ? watched : live",
    BUDGET,
  ),
];
