import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../../api/ironfence/bare-metal-remediation.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/names/labels.ts";
import type { CoverageJudge } from "../../../nodes/health-check-coverage.ts";
import { compileNodePolicy } from "../decide/policy.ts";
import type { HealthCheckObject } from "./health-check.ts";

const OURS = `${BARE_METAL_REMEDIATION_TEMPLATES.group}/`;

/**
 * Which nodes some health check would remediate through ironfence. A pause ends, so one that is paused counts. One that
 * is disabled has an alert of its own, and one with templates of other projects only fences by other means.
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
