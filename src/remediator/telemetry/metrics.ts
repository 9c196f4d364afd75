import type { Registry } from "prom-client";
import { CAUSE_CLASSES } from "../../bmc/evidence/model.ts";
import type { CauseClass } from "../../bmc/evidence/model.ts";
import { DEVICE_OPERATIONS, DEVICE_PROTOCOLS, DEVICE_RESULTS } from "../../bmc/devices/measured-device.ts";
import type { MeasuredCall } from "../../bmc/devices/measured-device.ts";
import { KDUMP_RESULTS } from "../kdump/kdump-messages.ts";
import type { KdumpResult } from "../kdump/kdump-messages.ts";
import { createCounter, createGauge, createHistogram, metric } from "../../telemetry/metric.ts";
import type { Metric } from "../../telemetry/metric.ts";
import { REASONS } from "../machine/model/decision/reasons.ts";
import { STATE_NAMES } from "../machine/model/decision/state.ts";

export interface RemediatorMetrics {
  finished(result: "Succeeded" | "Failed", reason: string): void;
  /** A state was left after `seconds`. */
  left(state: string, seconds: number): void;
  inFlight(count: number): void;
  /** Remediations that wait for admission. */
  waiting(count: number): void;
  /** Remediations that wait for a collection to be read. */
  waitingForInput(count: number): void;
  /** Collections whose view may be stale. */
  staleViews(count: number): void;
  /** Remediations that are past the deadline of their state. */
  overdue(count: number): void;
  /** A taint was removed from a node whose host is not proven off. */
  unvouchedTaint(): void;
  /** Nodes that a remediation which is gone has left unfinished. */
  orphaned(count: number): void;
  /** The workloads of a node were released. */
  released(downtime: Downtime): void;
  /** A node was restored. */
  restored(downtime: Downtime): void;
  /** A cause of death was recorded. */
  cause(cause: CauseClass): void;
  /** A datagram was received on the port for fence_kdump. */
  kdumpMessage(result: KdumpResult): void;
  /** A call of a BMC has ended. */
  bmcCall(call: MeasuredCall): void;
  /** BareMetalHosts by what the last probe has found. */
  probedHosts(counts: Readonly<Record<HostProbeState, number>>): void;
}

/** When a downtime begins. `SINCE` explains the values. */
const OUTAGE_STARTS = ["notReady", "renewal"] as const;

/** How long a node has been down. */
export interface Downtime {
  since: (typeof OUTAGE_STARTS)[number];
  seconds: number;
}

const HOST_PROBE_STATES = ["usable", "failing", "unprobed"] as const;
/** `unprobed`: not probed yet, or the state of the host does not allow a fence. */
export type HostProbeState = (typeof HOST_PROBE_STATES)[number];

/** The reason of a remediation that has succeeded. */
const RESTORED = "NodeRestored";
const FINAL_STATES: readonly string[] = ["Succeeded", "Failed"];

const FINISHED = metric({
  name: "ironfence_remediations_total",
  type: "counter",
  help: "finished remediations",
  labels: { result: ["Succeeded", "Failed"], reason: [RESTORED, ...REASONS] },
});
const STEPS = metric({
  name: "ironfence_remediation_step_seconds",
  type: "histogram",
  help: "time that remediations spent in each state",
  labels: { state: STATE_NAMES.filter((name) => !FINAL_STATES.includes(name)) },
  buckets: [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600],
});
const IN_FLIGHT = metric({
  name: "ironfence_remediations_in_flight",
  type: "gauge",
  help: "remediations without a verdict",
  labels: {},
});
const WAITING = metric({
  name: "ironfence_remediations_waiting_for_turn",
  type: "gauge",
  help: "remediations that wait for admission, because of a limit or of etcd quorum",
  labels: {},
});
const WAITING_FOR_INPUT = metric({
  name: "ironfence_remediations_waiting_for_input",
  type: "gauge",
  help: "remediations that wait for a collection that cannot be listed (InputUnread)",
  labels: {},
});
const STALE_VIEWS = metric({
  name: "ironfence_stale_views",
  type: "gauge",
  help: "collections whose view may be stale because their watches are silent or fail; with the Event ViewStale",
  labels: {},
});
const OVERDUE = metric({
  name: "ironfence_remediations_overdue",
  type: "gauge",
  help: "remediations past the deadline of their state; the condition Processing names the cause",
  labels: {},
});
const UNVOUCHED = metric({
  name: "ironfence_unvouched_taints_total",
  type: "counter",
  help: "out-of-service taints that were removed because no running remediation proved the host off",
  labels: {},
});
const ORPHANED = metric({
  name: "ironfence_orphaned_nodes",
  type: "gauge",
  help: "nodes that a remediation left behind by disappearing without an undo, until they are Ready",
  labels: {},
});
const HOSTS = metric({
  name: "ironfence_bare_metal_hosts",
  type: "gauge",
  help: "BareMetalHosts by what [the last probe](metal3.md#in-quiet-times) of their BMC has found",
  labels: { state: HOST_PROBE_STATES },
});
const SINCE =
  "`notReady`: from the moment when it left Ready, for nodes that were not Ready when they were fenced. `renewal`: from the last renewal of its lease, for [early releases](../explanation/early-release.md). A node that was Ready and renewed its lease, or whose failure this agent has not seen, is not counted";
const RELEASED = metric({
  name: "ironfence_time_to_release_seconds",
  type: "histogram",
  help: `time from the failure of a node until its workloads were released. ${SINCE}`,
  labels: { since: OUTAGE_STARTS },
  buckets: [10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1_800],
});
const RESTORED_AFTER = metric({
  name: "ironfence_time_to_restore_seconds",
  type: "histogram",
  help: `time from the failure of a node until its remediation succeeded. ${SINCE}`,
  labels: { since: OUTAGE_STARTS },
  buckets: [30, 60, 120, 180, 300, 450, 600, 900, 1_800, 3_600],
});
const BMC_CALLS = metric({
  name: "ironfence_bmc_request_seconds",
  type: "histogram",
  help: "time that calls to BMCs took, including the login and all requests of a call. `denied`: the BMC refused user, password or permissions, or its certificate is not trusted",
  labels: { protocol: DEVICE_PROTOCOLS, operation: DEVICE_OPERATIONS, result: DEVICE_RESULTS },
  buckets: [0.1, 0.5, 1, 2, 5, 15, 60],
});

const CAUSES = metric({
  name: "ironfence_causes_of_death_total",
  type: "counter",
  help: "fenced hosts by the cause of death that their BMCs show. `None`: they show no cause",
  labels: { class: CAUSE_CLASSES },
});

const KDUMP_MESSAGES = metric({
  name: "ironfence_kdump_messages_total",
  type: "counter",
  help: "datagrams that the leader received on `--kdump-bind-address`. `accepted`: the crash kernel of a node that is being fenced writes a dump. `unexpected`: no remediation waits for a crash dump of a node that has the address",
  labels: { result: KDUMP_RESULTS },
});

/** The metrics that change when something happens. */
export const REMEDIATOR_METRICS: readonly Metric[] = [
  FINISHED,
  STEPS,
  IN_FLIGHT,
  WAITING,
  WAITING_FOR_INPUT,
  STALE_VIEWS,
  OVERDUE,
  UNVOUCHED,
  ORPHANED,
  HOSTS,
  RELEASED,
  RESTORED_AFTER,
  BMC_CALLS,
  CAUSES,
  KDUMP_MESSAGES,
];

/** The remediator's metrics; docs/reference/metrics.md lists them. */
export function createMetrics(registry: Registry): RemediatorMetrics {
  const finished = createCounter(FINISHED, registry, [
    { result: "Succeeded", reason: RESTORED },
    ...REASONS.map((reason) => ({ result: "Failed", reason })),
  ]);
  const steps = createHistogram(STEPS, registry);
  const inFlight = createGauge(IN_FLIGHT, registry);
  const waiting = createGauge(WAITING, registry);
  const waitingForInput = createGauge(WAITING_FOR_INPUT, registry);
  const staleViews = createGauge(STALE_VIEWS, registry);
  const overdue = createGauge(OVERDUE, registry);
  const unvouched = createCounter(UNVOUCHED, registry);
  const orphaned = createGauge(ORPHANED, registry);
  const hosts = createGauge(HOSTS, registry);
  const released = createHistogram(RELEASED, registry);
  const restored = createHistogram(RESTORED_AFTER, registry);
  const bmcCalls = createHistogram(BMC_CALLS, registry);
  const causes = createCounter(CAUSES, registry);
  const kdumpMessages = createCounter(
    KDUMP_MESSAGES,
    registry,
    KDUMP_RESULTS.map((result) => ({ result })),
  );
  return {
    kdumpMessage: (result) => kdumpMessages.inc({ result }),
    cause: (found) => causes.inc({ class: found }),
    released: ({ since, seconds }) => released.observe({ since }, seconds),
    restored: ({ since, seconds }) => restored.observe({ since }, seconds),
    bmcCall: ({ seconds, ...labels }) => bmcCalls.observe(labels, seconds),
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
