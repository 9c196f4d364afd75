import { METRIC_CATALOG } from "../../src/cli/agent/metric-catalog.ts";
import type { Metric } from "../../src/telemetry/metric.ts";

/** Characters on a line of the page. */
const LINE_MAX = 120;
/** An item lists at most this many values of a label. */
const VALUES_MAX = 12;

const HEAD = `<!-- Generated from the definitions in src by \`npm run generate\`; do not edit. -->

# Metrics

The agent serves Prometheus metrics at \`/metrics\` ([network](network.md)). [Monitoring](../how-to/monitoring.md) says
how to scrape them, and has alerts and a dashboard.

Each value of a label that this page lists has a series from the start, with the value 0. Only the agent that leads has
the metrics of the remediator and of the detector. All agents also have the \`nodejs_\` and \`process_\` metrics of
prom-client.
`;

const INTRODUCTIONS: Readonly<Partial<Record<string, string>>> = {
  Detector:
    "The metrics whose names do not begin with `ironfence_` have the names of the operators that they replace, so that\ndashboards and alerts keep working.\n",
};

/** The page docs/reference/metrics.md. */
export function metricsPage(): string {
  const sections = Object.entries(METRIC_CATALOG).map(([part, metrics]) => {
    const introduction = INTRODUCTIONS[part];
    const items = [...metrics.map(itemOf), ""].join("\n");
    return [`## ${part}\n`, ...(introduction === undefined ? [] : [introduction]), items].join("\n");
  });
  return [HEAD, ...sections].join("\n");
}

function itemOf({ name, type, labels, help, buckets }: Metric): string {
  const bounds = buckets === undefined ? "" : `, buckets up to ${buckets.at(-1)} s`;
  return [
    wrapItem(`\`${name}\` (${type}${bounds}): ${help}.`, ""),
    ...Object.entries(labels).map(([label, values]) => wrapItem(`Label \`${label}\`: ${valuesText(values)}.`, "  ")),
  ].join("\n");
}

/** An item of a list, on lines of at most LINE_MAX characters. */
export function wrapItem(text: string, indent: string): string {
  const lines = [`${indent}-`];
  for (const word of text.split(" ")) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length <= LINE_MAX) lines[lines.length - 1] = line;
    else lines.push(`${indent}  ${word}`);
  }
  return lines.join("\n");
}

function valuesText(values: readonly string[] | string): string {
  if (typeof values === "string") return values;
  if (values.length > VALUES_MAX) return "a fixed set";
  return values.map((value) => `\`${value}\``).join(", ");
}
