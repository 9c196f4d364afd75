import { NODE_ATTEMPTS, NODE_DECIDE, SKIP_DURATION } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/detector");

/** Decisions of the detector about one node. */
export const DETECTOR_DECISIONS_MUTANTS: readonly Mutant[] = [
  mutant(
    "foreign-spec-recorded",
    "shared/model/template",
    "a log of decisions holds no spec of another vendor's template, which may have a password in it",
    "const isOurs = group === BARE_METAL_REMEDIATIONS.group && kind === BARE_METAL_REMEDIATIONS.kind;",
    'const isOurs = group !== "" && kind !== "";',
    "test/unit/detector/shared/check-decisions.test.ts",
  ),
  // The next step and its time.
  mutant(
    "terminating-counts-as-gone",
    "nodes/decide/decide-node",
    "no remediation starts while another one is still being undone",
    'concludeNode(evaluation, facts, "waiting", "Its last remediation is still being deleted");',
    "startStep(evaluation, facts, node, next, health);",
    NODE_DECIDE,
  ),
  // The attempt budget.
  mutant(
    "attempts-of-others-uncounted",
    "nodes/decide/retries",
    "the attempts of other health checks count",
    "[...facts.attempts, ...facts.attemptsOfOthers]",
    "[...facts.attempts]",
    NODE_ATTEMPTS,
  ),
  mutant(
    "mended-unheeded",
    "nodes/decide/retries",
    "when the cause of a failed remediation is fixed, the next one starts without a wait",
    "return fenceableSinceMs > failedMs ? fenceableSinceMs : Infinity;",
    "return fenceableSinceMs > failedMs ? Infinity : Infinity;",
    NODE_ATTEMPTS,
  ),
  mutant(
    "failed-round-forgotten",
    "nodes/decide/retries",
    "a round is stored as failed before its remediations are deleted, so that the waits between rounds double",
    'if (isStored || isLeftover) remove(evaluation, remediation, "restarted");',
    'if (isStored || !isLeftover) remove(evaluation, remediation, "restarted");',
    "test/sim/retry-waits.test.ts",
  ),
  // Hosts that are proven off.
  mutant(
    "skip-age-by-arrival-alone",
    "nodes/decide/skip-duration",
    "a proof with an old timestamp is not fresh, whenever it was received",
    "PROOF_AGE_MAX_MS - Math.max(ageMs, arrivedAgoMs ?? Infinity)",
    "PROOF_AGE_MAX_MS - (arrivedAgoMs ?? Infinity)",
    SKIP_DURATION,
  ),
];
