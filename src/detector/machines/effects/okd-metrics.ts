import type { Counter, Gauge, Registry } from "prom-client";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import { parseKey } from "../../../kube/watched.ts";
import { createCounter, createGauge, metric } from "../../../telemetry/metric.ts";
import type { Metric } from "../../../telemetry/metric.ts";
import type { MachineMetrics } from "./metrics.ts";

// Names and labels are OKD's, so that its alerts and dashboards continue to work.

const LABELS = { name: "the MachineHealthCheck", namespace: "its namespace" };
type OkdMetricLabel = keyof typeof LABELS;

const COVERED = metric({
  name: "mapi_machinehealthcheck_nodes_covered",
  type: "gauge",
  help: "Machines that a MachineHealthCheck of OKD covers",
  labels: LABELS,
});
const DELETED = metric({
  name: "mapi_machinehealthcheck_remediation_success_total",
  type: "counter",
  help: "Machines that a MachineHealthCheck of OKD has deleted",
  labels: LABELS,
});
const SHORT_CIRCUIT = metric({
  name: "mapi_machinehealthcheck_short_circuit",
  type: "gauge",
  help: "1 while `maxUnhealthy` keeps a MachineHealthCheck of OKD from remediating",
  labels: LABELS,
});

export const OKD_METRICS: readonly Metric[] = [COVERED, DELETED, SHORT_CIRCUIT];

/** The metrics that OKD has for its health checks. */
export class OkdMetrics implements MachineMetrics {
  readonly #registry: Registry;
  readonly #covered: Gauge<OkdMetricLabel>;
  readonly #deleted: Counter<OkdMetricLabel>;
  readonly #shortCircuit: Gauge<OkdMetricLabel>;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#covered = createGauge(COVERED, registry);
    this.#deleted = createCounter(DELETED, registry);
    this.#shortCircuit = createGauge(SHORT_CIRCUIT, registry);
  }

  observe(check: MachineHealthCheck, result: { covered: number | undefined; isRestricted: boolean }): void {
    const labels = labelsOf(check.metadata);
    if (result.covered !== undefined) this.#covered.set(labels, result.covered);
    this.#shortCircuit.set(labels, result.isRestricted ? 1 : 0);
  }

  deleted(check: MachineHealthCheck): void {
    this.#deleted.inc(labelsOf(check.metadata));
  }

  forget(key: string): void {
    const labels = labelsOf(parseKey(key));
    for (const metric of [this.#covered, this.#deleted, this.#shortCircuit]) metric.remove(labels);
  }

  /** Removes the metrics from the registry. The next term of leadership registers them again. */
  close(): void {
    for (const { name } of OKD_METRICS) this.#registry.removeSingleMetric(name);
  }
}

function labelsOf({ name, namespace = "" }: { name: string; namespace?: string }): Record<OkdMetricLabel, string> {
  return { name, namespace };
}
