/** A Prometheus alert. deploy/monitoring is generated from these. */
export interface Alert {
  /** Its runbook in docs/how-to/runbooks has this name in kebab case, without the prefix `Ironfence`. */
  name: `Ironfence${string}`;
  /**
   * critical: a node or its workloads may stay down; warning: the next fence may fail; info: look at it on a working
   * day.
   */
  severity: "critical" | "warning" | "info";
  expr: string;
  /** How long `expr` has to hold, in minutes. */
  forMinutes: number;
  summary: string;
  /**
   * Series that make the alert fire, in the notation of promtool with one value per minute, and the labels of the
   * alert.
   */
  example: Example;
  /** Other examples that make the alert fire. */
  otherExamples?: readonly Example[];
}

interface Example {
  series: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
  afterMinutes?: number;
}

/** The value of a series in every minute of two days. */
const always = (value: number): string => `${value}x2880`;
const JOB = 'job="ironfence"';
/** Labels of all alerts that sum over the agents of an installation. */
const OF_JOB = { job: "ironfence" };

export const ALERTS: readonly Alert[] = [
  {
    name: "IronfenceAbsent",
    severity: "critical",
    expr: "absent(ironfence_leader)",
    forMinutes: 10,
    summary: "Prometheus has no metrics of ironfence: no agent runs, or it is not scraped",
    example: { series: {}, labels: {} },
  },
  {
    name: "IronfenceNoLeader",
    severity: "critical",
    expr: "sum by (job) (ironfence_leader) == 0",
    forMinutes: 5,
    summary: "No agent leads, so no node is fenced",
    example: { series: { [`ironfence_leader{${JOB}}`]: always(0) }, labels: OF_JOB },
  },
  {
    name: "IronfenceNotReady",
    severity: "critical",
    expr: "sum by (job) (ironfence_leader > ironfence_ready) > 0",
    forMinutes: 5,
    summary: "The agent that leads is not ready: it may miss nodes that fail",
    example: {
      series: { [`ironfence_leader{${JOB}}`]: always(1), [`ironfence_ready{${JOB}}`]: always(0) },
      labels: OF_JOB,
    },
  },
  {
    name: "IronfenceSecondInstallation",
    severity: "warning",
    expr: 'max by (job, lease, state) (ironfence_cluster_lease{state=~"taken|refused"}) == 1',
    forMinutes: 15,
    summary:
      "The Lease {{ $labels.lease }} is {{ $labels.state }}: another installation works in this cluster, or could",
    example: {
      series: { [`ironfence_cluster_lease{${JOB},lease="kube-system/ironfence-detector",state="taken"}`]: always(1) },
      labels: { ...OF_JOB, lease: "kube-system/ironfence-detector", state: "taken" },
    },
  },
  {
    name: "IronfenceHostCannotBeFenced",
    severity: "warning",
    expr: 'sum by (job, reason) (ironfence_fencing_targets{reason!~"Usable|Degraded|Maintenance"} > 0 or label_replace(ironfence_bare_metal_hosts{state="failing"} > 0, "reason", "BareMetalHost", "", ""))',
    forMinutes: 30,
    summary: "Hosts could not be powered off now: {{ $labels.reason }}",
    example: {
      series: { [`ironfence_fencing_targets{${JOB},reason="AuthenticationFailed"}`]: always(2) },
      labels: { ...OF_JOB, reason: "AuthenticationFailed" },
    },
    otherExamples: [
      {
        series: { [`ironfence_bare_metal_hosts{${JOB},state="failing"}`]: always(1) },
        labels: { ...OF_JOB, reason: "BareMetalHost" },
      },
    ],
  },
  {
    name: "IronfenceNodeUncovered",
    severity: "warning",
    expr: 'sum by (job) (ironfence_nodes_uncovered{selected="yes"}) > 0',
    forMinutes: 60,
    summary: "Nodes that a health check covers have no FencingTarget and no BareMetalHost, so they cannot be fenced",
    example: { series: { [`ironfence_nodes_uncovered{${JOB},selected="yes"}`]: always(3) }, labels: OF_JOB },
  },
  {
    name: "IronfenceNodeNotSelected",
    severity: "info",
    expr: 'sum by (job) (ironfence_nodes_uncovered{selected="no"}) > 0',
    forMinutes: 60,
    summary: "Nodes have no FencingTarget and no BareMetalHost, and no health check covers them",
    example: { series: { [`ironfence_nodes_uncovered{${JOB},selected="no"}`]: always(3) }, labels: OF_JOB },
  },
  {
    name: "IronfencePaused",
    severity: "warning",
    expr: "max by (job) (ironfence_paused) == 1",
    forMinutes: 240,
    summary: "Power-offs have been held by a pause for four hours",
    example: { series: { [`ironfence_paused{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceMaintenance",
    severity: "info",
    expr: "sum by (job) (ironfence_maintenance) > 0",
    forMinutes: 1_440,
    summary: "FencingTargets have been in maintenance for a day",
    example: { series: { [`ironfence_maintenance{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceHealthCheckDisabled",
    severity: "critical",
    expr: 'sum by (job, reason) (ironfence_health_checks{state="Disabled"} or ironfence_machine_health_checks{reason="SpecInvalid"}) > 0',
    forMinutes: 10,
    summary: "A health check is disabled and remediates nothing: {{ $labels.reason }}",
    example: {
      series: { [`ironfence_health_checks{${JOB},state="Disabled",reason="SpecInvalid"}`]: always(1) },
      labels: { ...OF_JOB, reason: "SpecInvalid" },
    },
    otherExamples: [
      {
        series: {
          [`ironfence_machine_health_checks{${JOB},family="machine-health-check",reason="SpecInvalid"}`]: always(1),
        },
        labels: { ...OF_JOB, reason: "SpecInvalid" },
      },
    ],
  },
  {
    name: "IronfenceHealthCheckHeld",
    severity: "warning",
    expr: 'sum by (job, reason) (ironfence_health_checks{state!="Disabled", reason=~"ThresholdHolds|ThresholdTooHigh|StormActive|ViewStale|RemediationFailed|NoNodes"} or ironfence_machine_health_checks{reason=~"ViewStale|WorkloadClusterUnreachable|TooManyUnhealthy|NoMachines|NotJudged"}) > 0',
    forMinutes: 10,
    summary: "A health check is enabled, but does not remediate all of its nodes: {{ $labels.reason }}",
    example: {
      series: { [`ironfence_health_checks{${JOB},state="Enabled",reason="StormActive"}`]: always(1) },
      labels: { ...OF_JOB, reason: "StormActive" },
    },
    otherExamples: [
      {
        series: { [`ironfence_health_checks{${JOB},state="Enabled",reason="ThresholdTooHigh"}`]: always(1) },
        labels: { ...OF_JOB, reason: "ThresholdTooHigh" },
      },
      {
        series: { [`ironfence_health_checks{${JOB},state="Remediating",reason="ThresholdHolds"}`]: always(1) },
        labels: { ...OF_JOB, reason: "ThresholdHolds" },
      },
      {
        series: {
          [`ironfence_machine_health_checks{${JOB},family="okd-machine-health-check",reason="TooManyUnhealthy"}`]:
            always(1),
        },
        labels: { ...OF_JOB, reason: "TooManyUnhealthy" },
      },
    ],
  },
  {
    name: "IronfenceHealthCheckPaused",
    severity: "warning",
    expr: 'sum by (job, reason) (ironfence_health_checks{reason=~"PauseRequested|ClusterUpgrading"} or ironfence_machine_health_checks{reason="Paused"}) > 0',
    forMinutes: 240,
    summary: "A health check has been paused for four hours and starts no remediation: {{ $labels.reason }}",
    example: {
      series: { [`ironfence_health_checks{${JOB},state="Paused",reason="PauseRequested"}`]: always(1) },
      labels: { ...OF_JOB, reason: "PauseRequested" },
    },
    otherExamples: [
      {
        series: {
          [`ironfence_machine_health_checks{${JOB},family="machine-health-check",reason="Paused"}`]: always(1),
        },
        labels: { ...OF_JOB, reason: "Paused" },
      },
    ],
  },
  {
    name: "IronfenceNodeNotStarted",
    severity: "critical",
    expr: "sum by (job) (ironfence_nodes_not_started) > 0",
    forMinutes: 5,
    summary: "A node is unhealthy, and its remediation cannot be created",
    example: { series: { [`ironfence_nodes_not_started{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceAttemptsSpent",
    severity: "critical",
    expr: "sum by (job) (ironfence_attempt_budget_spent) > 0",
    forMinutes: 5,
    summary: "Unhealthy nodes were remediated too often and are not tried again",
    example: { series: { [`ironfence_attempt_budget_spent{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceRemediationFailed",
    severity: "critical",
    expr: 'sum by (job, reason) (increase(ironfence_remediations_total{result="Failed"}[1h])) > 0',
    forMinutes: 0,
    summary: "A remediation has failed within the last hour: {{ $labels.reason }}",
    example: {
      series: { [`ironfence_remediations_total{${JOB},result="Failed",reason="PowerOffTimeout"}`]: "0x60 1x60" },
      labels: { ...OF_JOB, reason: "PowerOffTimeout" },
      afterMinutes: 62,
    },
  },
  {
    name: "IronfenceRemediationHeld",
    severity: "warning",
    expr: 'sum by (job, reason) (ironfence_remediations_held{reason!~"HostBusy|WaitingForTurn"}) > 0',
    forMinutes: 5,
    summary: "A node is unhealthy and its remediation cannot proceed: {{ $labels.reason }}",
    example: {
      series: { [`ironfence_remediations_held{${JOB},reason="ControlPlaneQuorum"}`]: always(1) },
      labels: { ...OF_JOB, reason: "ControlPlaneQuorum" },
    },
  },
  {
    name: "IronfenceRemediationOverdue",
    severity: "critical",
    expr: "sum by (job) (ironfence_remediations_overdue) > 0",
    forMinutes: 5,
    summary: "A remediation is past the deadline of its state, and its host may be off",
    example: { series: { [`ironfence_remediations_overdue{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceOrphanedNode",
    severity: "critical",
    expr: "sum by (job) (ironfence_orphaned_nodes) > 0",
    forMinutes: 10,
    summary: "A remediation disappeared before its end, and the host of its node may be off",
    example: { series: { [`ironfence_orphaned_nodes{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceStaleView",
    severity: "warning",
    expr: "sum by (job) (ironfence_stale_views) > 0",
    forMinutes: 5,
    summary: "A watch of the leader is silent or fails, so it may notice changes late",
    example: { series: { [`ironfence_stale_views{${JOB}}`]: always(1) }, labels: OF_JOB },
  },
  {
    name: "IronfenceProbesOld",
    severity: "warning",
    // The status of a target is written once per hour. In a large cluster, one device is probed every 2.5 s.
    expr: "max by (job) (ironfence_probe_age_seconds) > 3600 + 4 * clamp_min(2.5 * sum by (job) (ironfence_fencing_targets), 600)",
    forMinutes: 15,
    summary: "FencingTargets are probed too seldom, so their status may be out of date",
    example: {
      series: {
        [`ironfence_probe_age_seconds{${JOB}}`]: always(7_200),
        [`ironfence_fencing_targets{${JOB},reason="Usable"}`]: always(10),
      },
      labels: OF_JOB,
    },
  },
  {
    name: "IronfenceBmcCertificateExpires",
    severity: "warning",
    expr: 'sum by (job, expires) (ironfence_bmc_certificates{expires!="later"}) > 0',
    forMinutes: 60,
    summary: "TLS certificates of BMCs expire soon or have expired: {{ $labels.expires }}",
    example: {
      series: { [`ironfence_bmc_certificates{${JOB},expires="within_7d"}`]: always(1) },
      labels: { ...OF_JOB, expires: "within_7d" },
    },
  },
  {
    name: "IronfenceBmcCallsFail",
    severity: "warning",
    expr: 'sum by (job, protocol) (rate(ironfence_bmc_request_seconds_count{result!="ok"}[30m])) / sum by (job, protocol) (rate(ironfence_bmc_request_seconds_count[30m])) > 0.2',
    forMinutes: 15,
    summary: "More than a fifth of all calls to BMCs by {{ $labels.protocol }} fail",
    example: {
      series: {
        [`ironfence_bmc_request_seconds_count{${JOB},protocol="redfish",operation="identify",result="ok"}`]: "0+10x120",
        [`ironfence_bmc_request_seconds_count{${JOB},protocol="redfish",operation="identify",result="timeout"}`]:
          "0+10x120",
      },
      labels: { ...OF_JOB, protocol: "redfish" },
      afterMinutes: 17,
    },
  },
  {
    name: "IronfenceReleaseSlow",
    severity: "info",
    expr: "histogram_quantile(0.9, sum by (job, le) (increase(ironfence_time_to_release_seconds_bucket[1d]))) > 300",
    forMinutes: 0,
    summary: "Within the last day, it took over five minutes to release the workloads of a failed node",
    example: {
      series: {
        [`ironfence_time_to_release_seconds_bucket{${JOB},since="notReady",le="300"}`]: always(0),
        [`ironfence_time_to_release_seconds_bucket{${JOB},since="notReady",le="600"}`]: "0x10 1x100",
        [`ironfence_time_to_release_seconds_bucket{${JOB},since="notReady",le="+Inf"}`]: "0x10 1x100",
      },
      labels: OF_JOB,
      afterMinutes: 12,
    },
  },
];

/** The path of the runbook of an alert in this repository. */
export function runbookOf({ name }: Pick<Alert, "name">): string {
  const words = name.slice("Ironfence".length).replaceAll(/(?<=.)[A-Z]/g, "-$&");
  return `docs/how-to/runbooks/${words.toLowerCase()}.md`;
}
