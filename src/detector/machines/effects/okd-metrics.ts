import { Counter, Gauge } from "prom-client";
import type { Registry } from "prom-client";
import type { MachineHealthCheck } from "../../../api/machine-health-check.ts";
import { parseKey } from "../../../kube/watched.ts";
import type { MachineMetrics } from "./metrics.ts";

// Names and labels are OKD's, so that its alerts and dashboards go on working.

const COVERED = "mapi_machinehealthcheck_nodes_covered";
const DELETED = "mapi_machinehealthcheck_remediation_success_total";
const SHORT_CIRCUIT = "mapi_machinehealthcheck_short_circuit";
const LABELS = ["name", "namespace"] as const;
type Label = (typeof LABELS)[number];

/** What OKD counts of its health checks. */
export class OkdMetrics implements MachineMetrics {
  readonly #registry: Registry;
  readonly #covered: Gauge<Label>;
  readonly #deleted: Counter<Label>;
  readonly #shortCircuit: Gauge<Label>;

  constructor(registry: Registry) {
    this.#registry = registry;
    const common = { labelNames: LABELS, registers: [registry] };
    this.#covered = new Gauge({ name: COVERED, help: "Machines that a MachineHealthCheck covers", ...common });
    this.#deleted = new Counter({ name: DELETED, help: "Machines that a MachineHealthCheck has deleted", ...common });
    this.#shortCircuit = new Gauge({
      name: SHORT_CIRCUIT,
      help: "1 while maxUnhealthy keeps a MachineHealthCheck from remediating",
      ...common,
    });
  }

  observe(check: MachineHealthCheck, seen: { covered: number | undefined; isRestricted: boolean }): void {
    const labels = labelsOf(check.metadata);
    if (seen.covered !== undefined) this.#covered.set(labels, seen.covered);
    this.#shortCircuit.set(labels, seen.isRestricted ? 1 : 0);
  }

  deleted(check: MachineHealthCheck): void {
    this.#deleted.inc(labelsOf(check.metadata));
  }

  forget(key: string): void {
    const labels = labelsOf(parseKey(key));
    for (const metric of [this.#covered, this.#deleted, this.#shortCircuit]) metric.remove(labels);
  }

  /** Removes the metrics from the registry; the next term of leadership registers them again. */
  close(): void {
    for (const name of [COVERED, DELETED, SHORT_CIRCUIT]) this.#registry.removeSingleMetric(name);
  }
}

function labelsOf({ name, namespace = "" }: { name: string; namespace?: string }): Record<Label, string> {
  return { name, namespace };
}
