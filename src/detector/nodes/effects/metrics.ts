import { Counter, Gauge } from "prom-client";
import type { Registry } from "prom-client";
import type { NodeHealthCheckStatus, RemediationRecord, UnhealthyNode } from "../../../api/node-health-check.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { CompactHistogram } from "../../../telemetry/compact-histogram.ts";

// Names, labels and buckets are upstream's, so that dashboards and alerts go on working. `name` is the node's name,
// `remediation` the kind of the CR and `namespace` the CR's.

const OLD = "nodehealthcheck_old_remediation_cr";
const ONGOING = "nodehealthcheck_ongoing_remediation";
const DURATION = "nodehealthcheck_unhealthy_node_duration_seconds";
const LABELS = ["name", "namespace", "remediation"] as const;
type Labels = Record<(typeof LABELS)[number], string>;

/** What the detector counts. */
export class DetectorMetrics {
  readonly #old: Counter<"name" | "namespace">;
  readonly #ongoing: Gauge<(typeof LABELS)[number]>;
  readonly #durations: CompactHistogram<(typeof LABELS)[number]>;

  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
    const registers = [registry];
    this.#old = new Counter({
      name: OLD,
      help: "Remediation CRs that were found to be older than 48 h",
      labelNames: ["name", "namespace"],
      registers,
    });
    this.#ongoing = new Gauge({
      name: ONGOING,
      help: "1 for each remediation of an unhealthy node that is in progress",
      labelNames: LABELS,
      registers,
    });
    this.#durations = new CompactHistogram({
      name: DURATION,
      help: "How long nodes were unhealthy, from the start of a remediation",
      buckets: [30, 60, 120, 180, 240, 300, 600, 1_200, 2_400, 3_600],
      registry,
    });
  }

  /** Removes the metrics from the registry; the next term of leadership registers them again. */
  close(): void {
    for (const name of [OLD, ONGOING, DURATION]) this.#registry.removeSingleMetric(name);
  }

  countOld(nodeName: string): void {
    // Upstream passes the node's namespace, and a node has none.
    this.#old.inc({ name: nodeName, namespace: "" });
  }

  /** Takes in that a health check is gone: nothing goes on for it any more. */
  forget(status: NodeHealthCheckStatus): void {
    for (const { name, remediations = [] } of status.unhealthyNodes ?? []) {
      for (const record of remediations) this.#ongoing.remove(labelsOf(name, record));
    }
  }

  /** Takes in that a health check's status went from `before` to `after`. */
  follow(before: NodeHealthCheckStatus, after: NodeHealthCheckStatus, nowMs: number): void {
    if (before === after) return;
    const were = byName(before);
    const stay = byName(after);
    // Thousands of nodes may be on record while the remediation of one ends.
    const isSame = (name: string) => sameRecords(were.get(name)?.remediations, stay.get(name)?.remediations);
    for (const [name, { remediations = [] }] of were) {
      if (isSame(name)) continue;
      const kept = new Set(stay.get(name)?.remediations?.map(uidOf));
      for (const record of remediations) {
        this.#ongoing.remove(labelsOf(name, record));
        if (kept.has(uidOf(record))) continue;
        const startedMs = parseTimeMs(record.started);
        if (stay.has(name) || startedMs === undefined) continue;
        this.#durations.observe(labelsOf(name, record), Math.max(0, nowMs - startedMs) / 1_000);
      }
    }
    for (const [name, { remediations = [] }] of stay) {
      if (isSame(name)) continue;
      // One that was given up does not go on, though its record stays.
      for (const record of remediations) {
        if (record.timedOut === undefined) this.#ongoing.set(labelsOf(name, record), 1);
      }
    }
  }
}

function byName({ unhealthyNodes = [] }: NodeHealthCheckStatus): Map<string, UnhealthyNode> {
  return new Map(unhealthyNodes.map((entry) => [entry.name, entry]));
}

function sameRecords(a: readonly RemediationRecord[] = [], b: readonly RemediationRecord[] = []): boolean {
  return a.length === b.length && a.every((record, index) => isSameRecord(record, b[index]));
}

function isSameRecord(a: RemediationRecord, b: RemediationRecord | undefined): boolean {
  return b !== undefined && uidOf(a) === uidOf(b) && a.timedOut === b.timedOut;
}

function labelsOf(nodeName: string, { resource }: RemediationRecord): Labels {
  return { name: nodeName, namespace: resource.namespace ?? "", remediation: resource.kind ?? "" };
}

function uidOf({ resource }: RemediationRecord): string | undefined {
  return resource.uid;
}
