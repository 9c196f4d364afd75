/** One query of a panel, in PromQL with Grafana's variables. */
export interface Query {
  expr: string;
  /** The name of a series, with its labels in double braces. */
  legend: string;
}

/** One panel of the dashboard. */
export interface Panel {
  title: string;
  description: string;
  kind: "stat" | "timeseries";
  /** A unit of Grafana: `s`, `bytes`, `short`. */
  unit: string;
  queries: readonly Query[];
  /** A stat turns from green to red at 1 (`bad`) or from red to green at 1 (`good`). */
  one?: "good" | "bad";
}

export interface Row {
  title: string;
  panels: readonly Panel[];
}

const stat = (title: string, expr: string, description: string, one?: Panel["one"], unit = "short"): Panel => ({
  kind: "stat",
  title,
  description,
  unit,
  queries: [{ expr, legend: title }],
  ...(one !== undefined && { one }),
});

const lines = (title: string, description: string, unit: string, queries: Readonly<Record<string, string>>): Panel => ({
  kind: "timeseries",
  title,
  description,
  unit,
  queries: Object.entries(queries).map(([legend, expr]) => ({ expr, legend })),
});

const quantile = (q: number, name: string, by: string): string =>
  `histogram_quantile(${q}, sum by (${by}) (increase(${name}_bucket[$__range])))`;

const SINCE_FAILURE = "Since the node left Ready, or since its last renewal if it was released early.";

/** What the dashboard shows, from top to bottom. */
export const ROWS: readonly Row[] = [
  {
    title: "Could we fence now?",
    panels: [
      stat("Leaders", "sum(ironfence_leader)", "Exactly one agent leads.", "good"),
      stat(
        "Hosts that can be fenced",
        'sum(ironfence_fencing_targets{reason=~"Usable|Degraded"}) + (sum(ironfence_bare_metal_hosts{state="usable"}) or vector(0))',
        "FencingTargets and BareMetalHosts whose last probe found all that a fence needs.",
        "good",
      ),
      stat(
        "Hosts that cannot be fenced",
        'sum(ironfence_fencing_targets{reason!~"Usable|Degraded"})',
        "All other FencingTargets, those in maintenance included.",
        "bad",
      ),
      stat(
        "Nodes without a target",
        "sum(ironfence_nodes_uncovered)",
        "ironfence cannot fence these nodes, whether a health check covers them or not.",
        "bad",
      ),
      stat("Paused", "max(ironfence_paused)", "1 while no host is powered off.", "bad"),
      stat("In maintenance", "sum(ironfence_maintenance)", "FencingTargets with spec.maintenance.", "bad"),
      stat("Oldest probe", "max(ironfence_probe_age_seconds)", "Age of the oldest last probe.", undefined, "s"),
      stat(
        "Nodes not remediated",
        "sum(ironfence_nodes_not_started) + sum(ironfence_attempt_budget_spent)",
        "Unhealthy nodes whose remediation cannot be created, or that have used up their attempts.",
        "bad",
      ),
      lines("FencingTargets by reason", "The reason of the condition Ready.", "short", {
        "{{reason}}": "sum by (reason) (ironfence_fencing_targets) > 0",
      }),
      lines("Health checks by state", "NodeHealthChecks, and why they do not remediate.", "short", {
        "{{state}} {{reason}}": "sum by (state, reason) (ironfence_health_checks) > 0",
      }),
    ],
  },
  {
    title: "What is going on?",
    panels: [
      lines("Remediations", "Remediations without a verdict, and those of them that wait for admission.", "short", {
        "in flight": "sum(ironfence_remediations_in_flight)",
        "waiting for admission": "sum(ironfence_remediations_waiting_for_turn)",
      }),
      lines("Nodes under remediation", "One line for each node, by the kind of its remediation.", "short", {
        "{{name}} {{remediation}}": "sum by (name, remediation) (nodehealthcheck_ongoing_remediation)",
      }),
      lines("Verdicts", "Remediations that ended, by result and reason.", "short", {
        "{{result}} {{reason}}":
          "sum by (result, reason) (increase(ironfence_remediations_total[$__rate_interval])) > 0",
      }),
      lines("Left behind", "Nodes of remediations that disappeared, and taints that nothing proved.", "short", {
        "orphaned nodes": "sum(ironfence_orphaned_nodes)",
        "unproven taints": "sum(increase(ironfence_unvouched_taints_total[$__rate_interval]))",
      }),
    ],
  },
  {
    title: "How fast?",
    panels: [
      lines("From failure to released workloads", SINCE_FAILURE, "s", {
        median: quantile(0.5, "ironfence_time_to_release_seconds", "le"),
        "90 %": quantile(0.9, "ironfence_time_to_release_seconds", "le"),
      }),
      lines("From failure to recovery", SINCE_FAILURE, "s", {
        median: quantile(0.5, "ironfence_time_to_restore_seconds", "le"),
        "90 %": quantile(0.9, "ironfence_time_to_restore_seconds", "le"),
      }),
      lines("Early releases", "Remediations that began while the node was still Ready.", "short", {
        "a day": "sum(increase(ironfence_early_remediations_total[1d]))",
      }),
      lines("Time in each state", "Mean over the shown range.", "s", {
        "{{state}}":
          "sum by (state) (increase(ironfence_remediation_step_seconds_sum[$__range])) / (sum by (state) (increase(ironfence_remediation_step_seconds_count[$__range])) > 0)",
      }),
    ],
  },
  {
    title: "Who is held, and why?",
    panels: [
      lines("Held remediations", "The reason of the condition Processing.", "short", {
        "{{reason}}": "sum by (reason) (ironfence_remediations_held) > 0",
      }),
      lines("Stuck", "Remediations and views that need an operator if this lasts.", "short", {
        overdue: "sum(ironfence_remediations_overdue)",
        "waiting for a collection": "sum(ironfence_remediations_waiting_for_input)",
        "stale views": "sum(ironfence_stale_views)",
      }),
      lines("Leases between installations", "States of the Leases in kube-system.", "short", {
        "{{lease}} {{state}}": "max by (lease, state) (ironfence_cluster_lease) > 0",
      }),
      lines("Workload clusters", "Connections by state.", "short", {
        "{{state}}": "sum by (state) (ironfence_workload_clusters)",
      }),
    ],
  },
  {
    title: "BMC health",
    panels: [
      lines("BMCs by vendor", "Devices by the last probe.", "short", {
        "{{vendor}} {{state}}": "sum by (vendor, state) (ironfence_bmcs) > 0",
      }),
      lines("BareMetalHosts", "Hosts of Metal3 by the last probe.", "short", {
        "{{state}}": "sum by (state) (ironfence_bare_metal_hosts)",
      }),
      lines("Causes of death", "Fenced hosts of the last 30 days by what their BMCs show.", "short", {
        "{{class}}": "sum by (class) (increase(ironfence_causes_of_death_total[30d]))",
      }),
      lines("Certificates", "TLS certificates of BMCs by the time until they expire.", "short", {
        "{{expires}}": "sum by (expires) (ironfence_bmc_certificates)",
      }),
      lines("Duration of calls", "90 % of the calls that succeeded.", "s", {
        "{{protocol}} {{operation}}":
          'histogram_quantile(0.9, sum by (le, protocol, operation) (rate(ironfence_bmc_request_seconds_bucket{result="ok"}[$__rate_interval])))',
      }),
      lines("Failed calls", "By operation and result, a second.", "short", {
        "{{operation}} {{result}}":
          'sum by (operation, result) (rate(ironfence_bmc_request_seconds_count{result!="ok"}[$__rate_interval]))',
      }),
    ],
  },
  {
    title: "Agents",
    panels: [
      lines("Leader", "1 for the agent that leads.", "short", { "{{instance}}": "ironfence_leader" }),
      lines("Memory", "Resident memory of each agent, with its version.", "bytes", {
        "{{instance}} {{version}}":
          "process_resident_memory_bytes * on (job, instance) group_left (version) ironfence_build_info",
      }),
    ],
  },
];
