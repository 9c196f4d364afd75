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
  // Agents that only observe.
  mutant(
    "observer-reads-the-others-remediations",
    "shared/model/read-as-if-alone",
    "an agent that only observes ignores remediations that the acting agent has started",
    "return isRemediation && owners.some(({ kind }) => OWNER_KINDS.includes(kind)) ? undefined : raw;",
    "return raw;",
    "test/unit/detector/shared/read-as-if-alone.test.ts",
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
    "shared/views/watched-nodes/view-freshness",
    "nodes are counted by a watched view only while the view is proven fresh",
    "if (!this.isFresh(nowMs)) this.#isProven = false;",
    "if (!this.isFresh(nowMs)) this.#isProven = nowMs > this.#lastEventMs;",
    "test/unit/detector/shared/view-freshness.test.ts",
  ),
  mutant(
    "unreached-version-believed",
    "shared/views/watched-nodes/current-nodes",
    "the API server's newest version proves a view of the nodes fresh only once the view has reached it",
    "if (clock.monotonicMs() >= endMs) return false;",
    "if (clock.monotonicMs() >= endMs) break;",
    "test/unit/detector/shared/current-nodes.test.ts",
    "test/integration/detector-many.test.ts",
  ),
  mutant(
    "proof-dated-by-its-answer",
    "shared/views/watched-nodes/current-nodes",
    "a view of the nodes is proven as of the request for the version, not as of its answer",
    "freshness.prove(askedMs, clock.monotonicMs());",
    "freshness.prove(clock.monotonicMs(), clock.monotonicMs());",
    "test/unit/detector/shared/current-nodes.test.ts",
  ),
  mutant(
    "restored-server-proves-view",
    "shared/views/watched-nodes/current-nodes",
    "a version of a restored API server proves nothing about a view from before the restore",
    "if (before === undefined || !reachesVersion(resourceVersion, before)) return false;",
    "if (before === undefined) return false;",
    "test/unit/detector/shared/current-nodes.test.ts",
  ),
  mutant(
    "shared-read-outlives-proof",
    "shared/views/watched-nodes/current-nodes",
    "a watched node replaces a live read only if the view is proven as of the last 500 ms",
    "    return ageMs() <= SHARED_READ_AGE_MAX_MS;",
    "    return this.#provenMs > 0;",
    "test/unit/detector/shared/current-nodes.test.ts",
  ),
  mutant(
    "shared-read-dated-by-answer",
    "shared/views/watched-nodes/current-nodes",
    "the 500 ms in which watched nodes replace live reads count from the request for the version",
    "this.#provenMs = askedMs;",
    "this.#provenMs = clock.monotonicMs();",
    "test/unit/detector/shared/current-nodes.test.ts",
  ),
  mutant(
    "live-list-ignored",
    "nodes/decide/threshold",
    "nothing starts if a live list of the nodes forbids it",
    "judgeThreshold(threshold, live).isMet ? watched : live",
    "judgeThreshold(threshold, watched).isMet ? watched : live",
    BUDGET,
  ),
];
