import type { Counter, Gauge, Registry } from "prom-client";
import type {
  NodeHealthCheckStatus,
  RemediationRecord,
  UnhealthyNode,
} from "../../../api/ironfence/node-health-check.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { CompactHistogram } from "../../../telemetry/compact-histogram.ts";
import { collectedGauge, createCounter, createGauge, metric } from "../../../telemetry/metric.ts";
import type { GateOutcome, NodeCheckDecision } from "../decide/decision.ts";
import type { Disabled } from "../decide/status.ts";
import type { Threshold } from "../decide/threshold.ts";
import { toleratesOne } from "../decide/threshold.ts";
import type { Metric } from "../../../telemetry/metric.ts";

// Names, labels and buckets of the metrics `nodehealthcheck_…` come from upstream, so that dashboards and alerts
// continue to work. `name` is the name of the node, `remediation` is the kind of the CR, and `namespace` is the
// namespace of the CR.

const LABELS = {
  name: "the Node",
  namespace: "the namespace of the remediation CR",
  remediation: "the kind of the remediation CR",
};
type NodeMetricLabel = keyof typeof LABELS;
type Labels = Record<NodeMetricLabel, string>;

const OLD = metric({
  name: "nodehealthcheck_old_remediation_cr",
  type: "counter",
  help: "remediation CRs that were found to be older than 48 h",
  labels: { name: LABELS.name, namespace: "empty" },
});
const ONGOING = metric({
  name: "nodehealthcheck_ongoing_remediation",
  type: "gauge",
  help: "1 for each remediation of an unhealthy node that is in progress",
  labels: LABELS,
});
const DURATION = {
  name: "nodehealthcheck_unhealthy_node_duration_seconds",
  type: "histogram",
  help: "how long nodes were unhealthy, from the start of a remediation",
  labels: LABELS,
  buckets: [30, 60, 120, 180, 240, 300, 600, 1_200, 2_400, 3_600],
} as const satisfies Metric<NodeMetricLabel>;

/** How long the series of a deleted Node are kept. */
const GONE_KEPT_MS = 3_600_000;

/** Reasons of the condition Disabled. */
const DISABLED = [
  "RemediationTemplateNotFound",
  "RemediationTemplateInvalid",
  "ConflictingMachineHealthCheckDetected",
  "SpecInvalid",
] as const satisfies Disabled["reason"][];
/**
 * The values of the label `reason` for gates without a condition. The threshold has a condition if the health check has
 * a storm guard.
 */
const GATES = {
  paused: "PauseRequested",
  upgrading: "ClusterUpgrading",
  blocked: "ViewStale",
  threshold: "ThresholdHolds",
} as const satisfies Partial<Record<GateOutcome, string>>;
/** Conditions of an enabled health check that does not remediate every node that it should. */
const HINDRANCES = ["AttemptBudgetSpent", "RemediationFailed"] as const;
const STORM = "StormActive";
const NO_NODES = "NoNodes";
/** The same word as in `ironfence status`. */
const TOO_HIGH = "ThresholdTooHigh";
const PHASES = ["Enabled", "Remediating", "Paused", "Disabled"] as const;
/** The status is empty, or another version wrote it. */
const OTHER = "Other";
const HEALTH_CHECKS = metric({
  name: "ironfence_health_checks",
  type: "gauge",
  help: "NodeHealthChecks by their phase, and why they do not remediate: the reason of the condition `Disabled`; otherwise why no remediation starts (`PauseRequested`, `ClusterUpgrading`, `ViewStale`, `StormActive`, `NoNodes` if the selector matches none, or `ThresholdHolds` if too few nodes are healthy); otherwise `ThresholdTooHigh` if not even a single failed node may be remediated; otherwise the first of the other conditions that is True; `None` if nothing is wrong",
  labels: {
    state: [...PHASES, OTHER],
    reason: ["None", ...DISABLED, ...Object.values(GATES), STORM, NO_NODES, TOO_HIGH, ...HINDRANCES, OTHER],
  },
});
const BUDGET_SPENT = metric({
  name: "ironfence_attempt_budget_spent",
  type: "gauge",
  help: "unhealthy nodes that are not remediated again because their NodeHealthCheck has used up its attempt budget for them",
  labels: {},
});

const NOT_STARTED = metric({
  name: "ironfence_nodes_not_started",
  type: "gauge",
  help: "unhealthy nodes for which a NodeHealthCheck should have created a remediation but could not: the API server refuses it, its name is in use, or another client holds the remediation lease of the node",
  labels: {},
});
/** The outcomes of a decision that count. The outcome is `create` again when a deferral ends. */
const NOT_STARTED_OUTCOMES: ReadonlySet<string> = new Set(["create", "deferred", "foreign"]);

const EARLY = metric({
  name: "ironfence_early_remediations_total",
  type: "counter",
  help: "remediations that began while the node was still Ready, because its host was [proven off](../explanation/early-release.md)",
  labels: {},
});

export const NODE_HEALTH_CHECK_METRICS: readonly Metric[] = [
  HEALTH_CHECKS,
  BUDGET_SPENT,
  NOT_STARTED,
  EARLY,
  OLD,
  ONGOING,
  DURATION,
];

/** A health check as it is stored. */
interface StoredCheck {
  metadata: { name: string };
  status: NodeHealthCheckStatus;
}

interface LastDecision {
  gate: GateOutcome | undefined;
  /** Undefined if the spec is invalid. */
  threshold: Threshold | undefined;
  /** How many nodes have used up their attempt budget. */
  spent: number;
  /** How many nodes wait until a remediation is created. */
  notStarted: number;
}

/** Metrics of all NodeHealthChecks. */
export class NodeHealthCheckMetrics {
  readonly #early: Counter;
  readonly #old: Counter<"name" | "namespace">;
  readonly #ongoing: Gauge<NodeMetricLabel>;
  readonly #durations: CompactHistogram<NodeMetricLabel>;

  readonly #registry: Registry;

  /** When Nodes were deleted. The one that was deleted first comes first. */
  readonly #goneSinceMs = new Map<string, number>();

  /** By the name of the health check. */
  readonly #decisions = new Map<string, LastDecision>();

  /** @param checks all health checks, as they are stored when the metrics are read. */
  constructor(registry: Registry, checks: () => Iterable<StoredCheck>) {
    this.#registry = registry;
    collectedGauge(HEALTH_CHECKS, registry, (set) => {
      const counts = new Map<string, { state: string; reason: string; count: number }>();
      for (const { metadata, status } of checks()) {
        const labels = { state: stateOf(status), reason: reasonOf(status, this.#decisions.get(metadata.name)) };
        const key = `${labels.state} ${labels.reason}`;
        counts.set(key, { ...labels, count: (counts.get(key)?.count ?? 0) + 1 });
      }
      for (const { count, ...labels } of counts.values()) set(labels, count);
    });
    const sumOf = (count: "spent" | "notStarted"): number =>
      [...this.#decisions.values()].reduce((total, decision) => total + decision[count], 0);
    collectedGauge(BUDGET_SPENT, registry, (set) => set({}, sumOf("spent")));
    collectedGauge(NOT_STARTED, registry, (set) => set({}, sumOf("notStarted")));
    this.#early = createCounter(EARLY, registry);
    this.#old = createCounter(OLD, registry);
    this.#ongoing = createGauge(ONGOING, registry);
    this.#durations = new CompactHistogram({ ...DURATION, registry });
  }

  /** Removes the metrics from the registry. The next term of leadership registers them again. */
  close(): void {
    for (const { name } of NODE_HEALTH_CHECK_METRICS) this.#registry.removeSingleMetric(name);
  }

  /**
   * Is called when a Node was deleted. Its series stay for `GONE_KEPT_MS`, because a remediation may delete a Node that
   * comes back, and Prometheus must be able to read the last value.
   */
  nodeGone(nodeName: string, nowMs: number): void {
    this.#goneSinceMs.set(nodeName, nowMs);
  }

  nodeBack(nodeName: string): void {
    this.#goneSinceMs.delete(nodeName);
  }

  /** Removes the series of Nodes that were deleted long ago. */
  dropGone(nowMs: number): void {
    // The map is in the order of deletion.
    const gone = new Set<string>();
    for (const [name, sinceMs] of this.#goneSinceMs) {
      if (nowMs - sinceMs < GONE_KEPT_MS) break;
      gone.add(name);
      this.#goneSinceMs.delete(name);
    }
    if (gone.size === 0) return;
    for (const name of gone) this.#old.remove({ name, namespace: "" });
    this.#durations.removeIf(({ name }) => gone.has(name));
  }

  /** Counts a remediation that began early. */
  countEarly(): void {
    this.#early.inc();
  }

  countOld(nodeName: string): void {
    // Upstream passes the node's namespace, and a node has none.
    this.#old.inc({ name: nodeName, namespace: "" });
  }

  /** Keeps the parts of a decision that the status of the health check does not show. */
  keep(
    checkName: string,
    { gate, nodes }: Pick<NodeCheckDecision, "gate" | "nodes">,
    threshold: Threshold | undefined,
  ): void {
    const spent = nodes.filter(({ outcome }) => outcome === "budgetSpent").length;
    const notStarted = nodes.filter(({ outcome }) => NOT_STARTED_OUTCOMES.has(outcome)).length;
    this.#decisions.set(checkName, { gate: gate?.outcome, threshold, spent, notStarted });
  }

  /** Removes the metrics of a health check that was deleted. */
  forget(checkName: string, status: NodeHealthCheckStatus): void {
    this.#decisions.delete(checkName);
    for (const { name, remediations = [] } of status.unhealthyNodes ?? []) {
      for (const record of remediations) this.#ongoing.remove(labelsOf(name, record));
    }
  }

  /** Updates the metrics after the status of a health check has changed from `before` to `after`. */
  follow(before: NodeHealthCheckStatus, after: NodeHealthCheckStatus, nowMs: number): void {
    if (before === after) return;
    const were = byName(before);
    const stay = byName(after);
    // Unchanged entries are skipped, because the status may have entries of thousands of nodes when one remediation
    // ends.
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
      // A remediation that was given up is not ongoing, although its record stays.
      for (const record of remediations) {
        if (record.timedOut === undefined) this.#ongoing.set(labelsOf(name, record), 1);
      }
    }
  }
}

function stateOf({ phase }: NodeHealthCheckStatus): string {
  return PHASES.find((known) => known === phase) ?? OTHER;
}

function reasonOf(
  { phase, conditions = [], observedNodes }: NodeHealthCheckStatus,
  { gate, threshold }: Partial<LastDecision> = {},
): string {
  const reasonIf = (type: string): string | undefined =>
    conditions.find((condition) => condition.type === type && condition.status === "True")?.reason;
  if (phase === "Disabled") return DISABLED.find((known) => known === reasonIf("Disabled")) ?? OTHER;
  if (phase === "Paused") return GATES.paused;
  if (gate === "upgrading" || gate === "blocked") return GATES[gate];
  if (reasonIf(STORM) !== undefined) return STORM;
  // Checked before the threshold, because a threshold that is a number of nodes is never met without nodes.
  if (observedNodes === 0) return NO_NODES;
  if (gate === "threshold") return GATES.threshold;
  if (threshold !== undefined && observedNodes !== undefined && !toleratesOne(threshold, observedNodes))
    return TOO_HIGH;
  return HINDRANCES.find((type) => reasonIf(type) !== undefined) ?? "None";
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
