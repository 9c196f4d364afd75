import type { Registry } from "prom-client";
import { VERSION } from "../../runtime/version.ts";
import { collectedGauge, metric } from "../../telemetry/metric.ts";
import type { Metric } from "../../telemetry/metric.ts";

const LEADER = metric({
  name: "ironfence_leader",
  type: "gauge",
  help: "1 while this agent leads. The other agents stand by, and have only the metrics of this section and of the process",
  labels: {},
});
const BUILD_INFO = metric({
  name: "ironfence_build_info",
  type: "gauge",
  help: "1, with the version of this agent",
  labels: { version: [VERSION] },
});

export const AGENT_METRICS: readonly Metric[] = [LEADER, BUILD_INFO];

/** Counts what every agent shows, whether it leads or not. */
export function countAgent(registry: Registry, leads: () => boolean): void {
  collectedGauge(LEADER, registry, (set) => set({}, leads() ? 1 : 0));
  collectedGauge(BUILD_INFO, registry, (set) => set({ version: VERSION }, 1));
}
