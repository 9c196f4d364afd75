import { Counter, Gauge, Histogram } from "prom-client";
import type { Registry } from "prom-client";

/** One metric as users see it. docs/reference/metrics.md is made from all of them. */
export interface Metric<Label extends string = string> {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** One sentence. */
  readonly help: string;
  /** The values of each label. If users choose the values, a text that says what they are. */
  readonly labels: Readonly<Record<Label, readonly string[] | string>>;
  /** Upper bounds of a histogram, ascending. */
  readonly buckets?: readonly number[];
}

export type LabelValues<Label extends string> = Readonly<Record<Label, string>>;

/** Defines a metric, with the names of its labels as a type. */
export function metric<const Label extends string = never>(definition: Metric<Label>): Metric<Label> {
  return definition;
}

/**
 * A gauge whose values are collected at each scrape, so that no code has to follow the changes of what it counts.
 *
 * @param collect sets the present values. All other label values show 0.
 */
export function collectedGauge<Label extends string>(
  definition: Metric<Label>,
  registry: Registry,
  collect: (set: (labels: LabelValues<Label>, value: number) => void) => void,
): void {
  const series = allSeries(definition);
  const gauge = new Gauge<Label>({
    ...optionsOf(definition),
    registers: [],
    collect() {
      this.reset();
      for (const labels of series) this.set(labels, 0);
      collect((labels, value) => this.set(labels, value));
    },
  });
  registry.registerMetric(gauge);
}

export function createGauge<Label extends string>(definition: Metric<Label>, registry: Registry): Gauge<Label> {
  const gauge = new Gauge<Label>({ ...optionsOf(definition), registers: [registry] });
  for (const labels of allSeries(definition)) gauge.set(labels, 0);
  return gauge;
}

/**
 * A counter that starts at 0, because `rate` and `increase` do not see the first increase of a series that was not
 * there before.
 *
 * @param start the series that start at 0: by default all, if the values of all labels are known.
 */
export function createCounter<Label extends string>(
  definition: Metric<Label>,
  registry: Registry,
  start: readonly LabelValues<Label>[] = allSeries(definition),
): Counter<Label> {
  const counter = new Counter<Label>({ ...optionsOf(definition), registers: [registry] });
  for (const labels of start) counter.inc(labels, 0);
  return counter;
}

/** A histogram whose series all start at 0. */
export function createHistogram<Label extends string>(definition: Metric<Label>, registry: Registry): Histogram<Label> {
  const { buckets = [] } = definition;
  const histogram = new Histogram<Label>({ ...optionsOf(definition), buckets: [...buckets], registers: [registry] });
  for (const labels of allSeries(definition)) histogram.zero(labels);
  return histogram;
}

function optionsOf<Label extends string>({ name, help, labels }: Metric<Label>) {
  return { name, help, labelNames: Object.keys(labels) as Label[] };
}

/** Each combination of the labels' values; none if users choose the values of one. */
function allSeries<Label extends string>({ labels }: Metric<Label>): LabelValues<Label>[] {
  let series: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries<readonly string[] | string>(labels)) {
    if (typeof values === "string") return [];
    series = series.flatMap((known) => values.map((value) => ({ ...known, [label]: value })));
  }
  return series as LabelValues<Label>[];
}
