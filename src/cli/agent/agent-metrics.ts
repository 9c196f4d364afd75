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

const READY = metric({
  name: "ironfence_ready",
  type: "gauge",
  help: "1 while this agent is ready, as `/readyz` reports. A leader that is not ready may miss failures, for example because it lacks a permission",
  labels: {},
});

export const AGENT_METRICS: readonly Metric[] = [LEADER, BUILD_INFO, READY];

/** Registers the metrics that every agent has, whether it leads or not. */
export function countAgent(registry: Registry, leads: () => boolean, isReady: () => boolean): void {
  collectedGauge(LEADER, registry, (set) => set({}, leads() ? 1 : 0));
  collectedGauge(READY, registry, (set) => set({}, isReady() ? 1 : 0));
  collectedGauge(BUILD_INFO, registry, (set) => set({ version: VERSION }, 1));
}
