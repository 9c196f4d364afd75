import { WORKLOAD_CLUSTERS_METRIC } from "../../clusters/workload-clusters.ts";
import { MACHINE_HEALTH_CHECKS_METRIC } from "../../detector/machines/effects/machine-check-counts.ts";
import { OKD_METRICS } from "../../detector/machines/effects/okd-metrics.ts";
import { NODE_HEALTH_CHECK_METRICS } from "../../detector/nodes/effects/metrics.ts";
import { REMEDIATOR_METRICS } from "../../remediator/telemetry/metrics.ts";
import { PROBE_METRICS } from "../../remediator/telemetry/probe-metrics.ts";
import { VIEW_METRICS } from "../../remediator/telemetry/view-metrics.ts";
import type { Metric } from "../../telemetry/metric.ts";
import { AGENT_METRICS } from "./agent-metrics.ts";
import { CLUSTER_LEASE_METRIC } from "./installation.ts";
import { OBSERVED_METRIC } from "./withheld-remediations.ts";

/** All metrics, by the part of the agent that has them. docs/reference/metrics.md is generated from this list. */
export const METRIC_CATALOG: Readonly<Record<"Agent" | "Remediator" | "Detector", readonly Metric[]>> = {
  Agent: [...AGENT_METRICS, CLUSTER_LEASE_METRIC, OBSERVED_METRIC, WORKLOAD_CLUSTERS_METRIC],
  Remediator: [...VIEW_METRICS, ...PROBE_METRICS, ...REMEDIATOR_METRICS],
  Detector: [...NODE_HEALTH_CHECK_METRICS, MACHINE_HEALTH_CHECKS_METRIC, ...OKD_METRICS],
};
