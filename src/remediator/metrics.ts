import { Counter, Gauge, Histogram } from "prom-client";
import type { Registry } from "prom-client";

export interface RemediatorMetrics {
  finished(result: "Succeeded" | "Failed", reason: string): void;
  /** A state was left after `seconds`. */
  left(state: string, seconds: number): void;
  inFlight(count: number): void;
  /** Remediations that wait for their turn. */
  waiting(count: number): void;
  /** Remediations that wait for a collection to be read. */
  waitingForInput(count: number): void;
  /** Collections whose view may be stale. */
  staleViews(count: number): void;
  /** Remediations that are past the deadline of their state, and cannot go on. */
  overdue(count: number): void;
  /** A taint was taken off a node whose host nobody proves off. */
  unvouchedTaint(): void;
  /** Nodes that a remediation which is gone has left in mid-way. */
  orphaned(count: number): void;
  /** BareMetalHosts by what the last probe has found. */
  probedHosts(counts: Readonly<Record<HostProbeState, number>>): void;
}

/** `unprobed`: not yet, or in no state to be fenced. */
export type HostProbeState = "usable" | "failing" | "unprobed";

const STEP_BUCKETS_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600];

/** The remediator's metrics; docs/reference/metrics.md lists them. */
export function createMetrics(registry: Registry): RemediatorMetrics {
  const registers = [registry];
  const finished = new Counter({
    name: "ironfence_remediations_total",
    help: "Finished remediations by result and reason.",
    labelNames: ["result", "reason"],
    registers,
  });
  const steps = new Histogram({
    name: "ironfence_remediation_step_seconds",
    help: "Time that remediations spent in each state.",
    labelNames: ["state"],
    buckets: STEP_BUCKETS_SECONDS,
    registers,
  });
  const inFlight = new Gauge({
    name: "ironfence_remediations_in_flight",
    help: "Remediations without a verdict.",
    registers,
  });
  const waiting = new Gauge({
    name: "ironfence_remediations_waiting_for_turn",
    help: "Remediations that wait for their turn, because of a limit or of etcd's quorum.",
    registers,
  });
  const waitingForInput = new Gauge({
    name: "ironfence_remediations_waiting_for_input",
    help: "Remediations that wait for a collection that cannot be listed, FencingTargets for one.",
    registers,
  });
  const staleViews = new Gauge({
    name: "ironfence_stale_views",
    help: "Collections of which the remediator may know only an earlier state, since their watches are silent or fail.",
    registers,
  });
  const overdue = new Gauge({
    name: "ironfence_remediations_overdue",
    help: "Remediations past the deadline of their state: their condition Processing names what keeps them.",
    registers,
  });
  const unvouched = new Counter({
    name: "ironfence_unvouched_taints_total",
    help: "Out-of-service taints that were taken off since no remediation at work proved the host off.",
    registers,
  });
  const orphaned = new Gauge({
    name: "ironfence_orphaned_nodes",
    help: "Nodes that a remediation left behind by disappearing without an undo, until they are Ready: the host may be off.",
    registers,
  });
  const hosts = new Gauge({
    name: "ironfence_bare_metal_hosts",
    help: "BareMetalHosts by what the last probe of their BMC has found.",
    labelNames: ["state"],
    registers,
  });
  return {
    finished: (result, reason) => finished.inc({ result, reason }),
    left: (state, seconds) => steps.observe({ state }, seconds),
    inFlight: (count) => inFlight.set(count),
    overdue: (count) => overdue.set(count),
    waiting: (count) => waiting.set(count),
    waitingForInput: (count) => waitingForInput.set(count),
    staleViews: (count) => staleViews.set(count),
    unvouchedTaint: () => unvouched.inc(),
    orphaned: (count) => orphaned.set(count),
    probedHosts: (counts) => {
      for (const [state, count] of Object.entries(counts)) hosts.set({ state }, count);
    },
  };
}
