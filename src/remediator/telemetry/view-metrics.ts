import type { Registry } from "prom-client";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../api/ironfence/fencing-target.ts";
import type { HealthCheckCoverage } from "../../nodes/health-check-coverage.ts";
import type { Watched } from "../../kube/watched.ts";
import { collectedGauge, metric } from "../../telemetry/metric.ts";
import type { Metric } from "../../telemetry/metric.ts";
import type { HostDirectory } from "../hosts/model/host.ts";
import { readyOf } from "../hosts/fencing-target/target-store.ts";
import { REASONS } from "../machine/model/decision/reasons.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import { statusCondition } from "../machine/model/status.ts";
import { TARGET_REASONS } from "../hosts/fencing-target/target-reasons.ts";

/** No condition Ready yet. */
const NOT_PROBED = "NotProbed";
/** A reason that another version of the agent has written. */
const OTHER = "Other";

const TARGETS = metric({
  name: "ironfence_fencing_targets",
  type: "gauge",
  help: "FencingTargets by the [reason](target-reasons.md) of their condition Ready. Hosts can be fenced with `Usable` and `Degraded`; `NotProbed`: there is no condition yet",
  labels: { reason: [...TARGET_REASONS, NOT_PROBED, OTHER] },
});
const MAINTENANCE = metric({
  name: "ironfence_maintenance",
  type: "gauge",
  help: "FencingTargets with `spec.maintenance`: their hosts get no power order",
  labels: {},
});
const UNCOVERED = metric({
  name: "ironfence_nodes_uncovered",
  type: "gauge",
  help: "nodes of the agent's own cluster that no FencingTarget and no BareMetalHost describes, so that they cannot be fenced, by whether a health check that this agent serves would remediate them. A health check that is disabled, or has templates of other projects only, does not count",
  labels: { selected: ["yes", "no"] },
});
const PAUSED = metric({
  name: "ironfence_paused",
  type: "gauge",
  help: "1 while every power-off is held: there is [a pause](../how-to/pause.md), or the agent cannot read whether there is one",
  labels: {},
});
const HELD = metric({
  name: "ironfence_remediations_held",
  type: "gauge",
  help: "remediations without a verdict that wait or cannot proceed, by the [reason](reasons.md) of their condition Processing",
  labels: { reason: REASONS },
});

/** The metrics that are counted at each scrape, from views that the remediator already has. */
export const VIEW_METRICS: readonly Metric[] = [TARGETS, MAINTENANCE, UNCOVERED, PAUSED, HELD];

export interface MetricViews {
  targets: Pick<Watched<FencingTarget>, "values">;
  nodes: Pick<Watched<Node>, "values">;
  remediations: Pick<Watched<BareMetalRemediation>, "values">;
  directory: Pick<HostDirectory, "find">;
  coverage: Pick<HealthCheckCoverage, "judge">;
  /** `stopped` says why power-offs are held; undefined while they are not. */
  stopSwitch: { readonly stopped: unknown };
}

/** Registers gauges that count in `views`. */
export function countViews(registry: Registry, views: MetricViews): void {
  const { targets, nodes, remediations, directory, coverage, stopSwitch } = views;
  collectedGauge(TARGETS, registry, (set) => countBy(targets.values(), reasonOf, set));
  collectedGauge(MAINTENANCE, registry, (set) => {
    let count = 0;
    for (const { spec } of targets.values()) if (spec.maintenance) count += 1;
    set({}, count);
  });
  collectedGauge(UNCOVERED, registry, (set) => {
    const named = new Set<string>();
    for (const { spec } of targets.values()) if (spec.clusterRef === undefined) named.add(spec.nodeName);
    const uncovered = [...nodes.values()].filter(({ metadata: { name } }) => {
      if (named.has(name)) return false;
      const host = directory.find({ nodeName: name, cluster: undefined, machine: undefined });
      return !host.found && host.reason === "NoTarget";
    });
    const isSelected = coverage.judge();
    const selected = uncovered.filter(isSelected).length;
    set({ selected: "yes" }, selected);
    set({ selected: "no" }, uncovered.length - selected);
  });
  collectedGauge(PAUSED, registry, (set) => set({}, stopSwitch.stopped === undefined ? 0 : 1));
  collectedGauge(HELD, registry, (set) => countBy(remediations.values(), heldBy, set));
}

function countBy<T>(
  objects: Iterable<T>,
  reasonOf: (object: T) => string | undefined,
  set: (labels: { reason: string }, value: number) => void,
): void {
  const counts = new Map<string, number>();
  for (const object of objects) {
    const reason = reasonOf(object);
    if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  for (const [reason, count] of counts) set({ reason }, count);
}

const KNOWN_TARGET_REASONS: ReadonlySet<string> = new Set(TARGET_REASONS);
const KNOWN_REASONS: ReadonlySet<string> = new Set(REASONS);

function reasonOf({ status }: FencingTarget): string {
  const ready = readyOf(status);
  if (ready === undefined) return NOT_PROBED;
  return KNOWN_TARGET_REASONS.has(ready.reason) ? ready.reason : OTHER;
}

/**
 * Why a remediation cannot proceed; undefined if it has a verdict or makes progress, which its condition then names.
 */
function heldBy({ status = {} }: BareMetalRemediation): string | undefined {
  if (isFinal(status.phase)) return undefined;
  const reason = statusCondition(status, "Processing")?.reason;
  return reason !== undefined && KNOWN_REASONS.has(reason) ? reason : undefined;
}
