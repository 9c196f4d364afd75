import type { Alert } from "./alerts.ts";
import { ALERTS, runbookOf } from "./alerts.ts";

const GROUP = "ironfence";
/** Minutes before and after the time at which an alert begins to fire. */
const MARGIN_MINUTES = 1;

/** An alerting rule in the format of Prometheus. */
export interface Rule {
  alert: Alert["name"];
  expr: string;
  for?: string;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
}

/** A file of rules for Prometheus and promtool. */
export function plainRules(): { groups: { name: string; rules: Rule[] }[] } {
  return {
    groups: [
      {
        name: GROUP,
        rules: ALERTS.map((alert) => ({
          alert: alert.name,
          expr: alert.expr,
          ...(alert.forMinutes > 0 && { for: durationOf(alert.forMinutes) }),
          labels: { severity: alert.severity },
          annotations: { summary: alert.summary, runbook_url: runbookOf(alert) },
        })),
      },
    ],
  };
}

/** The same rules as an object of the Prometheus Operator. */
export function prometheusRule(): object {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: {
      name: "ironfence",
      namespace: "ironfence-system",
      labels: { "app.kubernetes.io/name": "ironfence" },
    },
    spec: plainRules(),
  };
}

/**
 * Unit tests for promtool: each alert fires when its example has lasted long enough and not before, and no other alert
 * fires.
 */
export function ruleTests(): object {
  return {
    rule_files: ["rules.yaml"],
    evaluation_interval: "1m",
    tests: ALERTS.flatMap(({ otherExamples = [], ...alert }) =>
      [alert.example, ...otherExamples].map((example): Alert => ({ ...alert, example })),
    ).map((alert) => {
      const atMinutes = alert.example.afterMinutes ?? alert.forMinutes + MARGIN_MINUTES;
      const earlyMinutes = atMinutes - 2 * MARGIN_MINUTES;
      const expected = {
        exp_labels: { ...alert.example.labels, severity: alert.severity },
        exp_annotations: { summary: summaryOf(alert), runbook_url: runbookOf(alert) },
      };
      return {
        name: alert.name,
        interval: "1m",
        input_series: seriesOf(alert),
        alert_rule_test: [
          ...(earlyMinutes < 0 ? [] : [{ eval_time: `${earlyMinutes}m`, alertname: alert.name, exp_alerts: [] }]),
          { eval_time: `${atMinutes}m`, alertname: alert.name, exp_alerts: [expected] },
          ...ALERTS.filter((other) => other.name !== alert.name).map((other) => ({
            eval_time: `${atMinutes}m`,
            alertname: other.name,
            exp_alerts: [],
          })),
        ],
      };
    }),
  };
}

/** The series of a leading agent without problems. */
const WELL: Readonly<Record<string, string>> = {
  'ironfence_leader{job="ironfence"}': "1x2880",
  'ironfence_ready{job="ironfence"}': "1x2880",
  'ironfence_fencing_targets{job="ironfence",reason="Usable"}': "3x2880",
  'ironfence_bare_metal_hosts{job="ironfence",state="failing"}': "0x2880",
  'ironfence_probe_age_seconds{job="ironfence"}': "600x2880",
  'ironfence_remediations_total{job="ironfence",result="Failed",reason="HostBusy"}': "0x2880",
};

function seriesOf({ name, example }: Alert): object[] {
  const well = name === "IronfenceAbsent" ? {} : WELL;
  return Object.entries({ ...well, ...example.series }).map(([series, values]) => ({ series, values }));
}

function summaryOf({ summary, example }: Alert): string {
  return summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => example.labels[label] ?? "");
}

function durationOf(minutes: number): string {
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}
