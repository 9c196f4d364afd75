import { METRIC_CATALOG } from "../../../src/cli/agent/metric-catalog.ts";
import type { Metric } from "../../../src/telemetry/metric.ts";

const METRICS = new Map(
  Object.values(METRIC_CATALOG)
    .flat()
    .map((metric) => [metric.name, metric]),
);
const OURS = /\b((?:ironfence|nodehealthcheck|mapi_machinehealthcheck)_[a-z_]+)(?:\{([^}]*)\})?/g;
/** Labels that Prometheus adds. */
const ADDED = new Set(["job", "instance", "le"]);

/** The parts of a PromQL expression that cannot match our metrics: unknown names, labels and values. */
export function problemsIn(expr: string): string[] {
  return [...expr.matchAll(OURS)].flatMap(([, name = "", matchers = ""]) => {
    const metric = METRICS.get(name) ?? histogramOf(name);
    if (metric === undefined) return [`${name} is not a metric`];
    return [...matchers.matchAll(/(\w+)\s*(!~|=~|!=|=)\s*"([^"]*)"/g)].flatMap(
      ([, label = "", operator, value = ""]) => {
        if (ADDED.has(label)) return [];
        const values = metric.labels[label];
        if (values === undefined) return [`${name} has no label ${label}`];
        if (typeof values === "string") return [];
        const wanted = operator?.includes("~") === true ? value.split("|") : [value];
        return wanted.filter((one) => !values.includes(one)).map((one) => `${label} of ${name} is never ${one}`);
      },
    );
  });
}

function histogramOf(name: string): Metric | undefined {
  const metric = METRICS.get(name.replace(/_(bucket|sum|count)$/, ""));
  return metric?.type === "histogram" ? metric : undefined;
}

/** Our metrics that an expression names. */
export function metricsIn(expr: string): string[] {
  return [...expr.matchAll(OURS)].map(([, name = ""]) => name);
}
