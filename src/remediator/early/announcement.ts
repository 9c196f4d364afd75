import * as z from "zod";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../api/ironfence/bare-metal-remediation.ts";
import type { NodeHealthCheckSpec } from "../../api/ironfence/node-health-check.ts";
import { nodeHealthCheckSpecSchema } from "../../api/ironfence/node-health-check.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import { parseAmount } from "../../api/schema/amount.ts";
import type { LabelMatcher } from "../../api/schema/label-selector.ts";
import { compileSelector, SelectorError } from "../../api/schema/label-selector.ts";
import type { UnhealthyCondition } from "../../api/schema/unhealthy-condition.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import { parseDurationMs } from "../../runtime/duration.ts";
import { parseTimeMs } from "../../runtime/time.ts";

// Predicts when health checks create remediations. Pure. A prediction permits nothing: other code decides whether a
// remediation is created and what it may do.

/** The default of `minHealthy`. */
const MIN_HEALTHY = "51%";

/** The fields of a health check's status from which its threshold is judged. */
const startCountsSchema = z.object({ observedNodes: z.int(), healthyNodes: z.int(), phase: z.string().optional() });
type StartCounts = z.infer<typeof startCountsSchema>;

/** A health check that creates BareMetalRemediations. */
export interface Announcing {
  selects: LabelMatcher;
  conditions: readonly UnhealthyCondition[];
}

/** The part of the status of a health check that `readAnnouncing` needs; undefined if it has none. */
export function startCounts(status: unknown): StartCounts | undefined {
  return startCountsSchema.safeParse(status).data;
}

/** Undefined for a health check that is invalid, or that starts nothing now according to its status. */
export function readAnnouncing(spec: unknown, status: unknown): Announcing | undefined {
  const { data } = nodeHealthCheckSpecSchema.safeParse(spec);
  const counts = startCounts(status);
  if (data === undefined || counts === undefined || !mayStart(data, counts)) return undefined;
  const [first] = (data.escalatingRemediations ?? []).toSorted((a, b) => a.order - b.order);
  if (!isOurTemplate(data.remediationTemplate ?? first?.remediationTemplate)) return undefined;
  const conditions = data.unhealthyConditions.flatMap(({ type, status, duration }) => {
    const durationMs = parseDurationMs(duration);
    return durationMs === undefined ? [] : [{ type, status, durationMs }];
  });
  try {
    return { selects: compileSelector(data.selector), conditions };
  } catch (error) {
    if (error instanceof SelectorError) return undefined;
    throw error;
  }
}

function mayStart(spec: NodeHealthCheckSpec, { observedNodes, healthyNodes, phase }: StartCounts): boolean {
  if (phase === "Disabled" || phase === "Paused" || (spec.pauseRequests ?? []).length > 0) return false;
  const { maxUnhealthy, minHealthy = MIN_HEALTHY } = spec;
  const amount = parseAmount(maxUnhealthy ?? minHealthy);
  if (amount === undefined) return false;
  const nodes = amount.unit === "nodes" ? amount.count : Math.ceil((observedNodes * amount.percent) / 100);
  return healthyNodes >= (maxUnhealthy === undefined ? nodes : observedNodes - nodes);
}

/**
 * When the first health check may create a remediation of the node, by the clock that sets the node's conditions;
 * undefined if no check finds a condition of the node unhealthy.
 */
export function durationEndMs(checks: readonly Announcing[], { metadata, status }: Node): number | undefined {
  let endMs: number | undefined;
  for (const { selects, conditions } of checks) {
    if (!selects(metadata.labels)) continue;
    for (const unhealthy of conditions) {
      const known = status.conditions?.find(({ type }) => type === unhealthy.type);
      const sinceMs = known?.status === unhealthy.status ? parseTimeMs(known.lastTransitionTime) : undefined;
      if (sinceMs !== undefined) endMs = Math.min(endMs ?? Infinity, sinceMs + unhealthy.durationMs);
    }
  }
  return endMs;
}

export function isOurTemplate(template: NodeHealthCheckSpec["remediationTemplate"]): boolean {
  return (
    template?.kind === BARE_METAL_REMEDIATION_TEMPLATES.kind &&
    template.apiVersion === apiVersionOf(BARE_METAL_REMEDIATION_TEMPLATES)
  );
}
