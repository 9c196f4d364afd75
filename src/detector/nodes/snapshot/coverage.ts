import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../../api/ironfence/bare-metal-remediation.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/names/labels.ts";
import type { CoverageJudge } from "../../../nodes/health-check-coverage.ts";
import { compileNodePolicy } from "../decide/policy.ts";
import type { HealthCheckObject } from "./health-check.ts";

const OURS = `${BARE_METAL_REMEDIATION_TEMPLATES.group}/`;

/**
 * Judges whether a health check would remediate a node with ironfence. A paused health check counts, because the pause
 * ends. A disabled one does not count, and has its own alert. One that has only templates of other projects does not
 * count, because ironfence does not fence its nodes.
 */
export function nodeCoverage(checks: Iterable<HealthCheckObject>): CoverageJudge {
  const policies = [...checks].flatMap(({ spec, status, metadata }) => {
    const compiled = compileNodePolicy(spec, metadata.annotations);
    if ("problem" in compiled || status.phase === "Disabled") return [];
    const { selects, steps } = compiled.policy;
    const isOurs = steps.some(({ template }) => template.apiVersion.startsWith(OURS));
    return isOurs ? [selects] : [];
  });
  return ({ metadata: { labels } }) =>
    labels?.[EXCLUDE_FROM_REMEDIATION] !== "true" && policies.some((selects) => selects(labels));
}
