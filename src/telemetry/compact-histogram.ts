import type { Histogram, Registry } from "prom-client";

/** The most series that are kept. One more drops the oldest. */
const SERIES_MAX = 10_000;

interface HistogramSeries<Label extends string> {
  labels: Record<Label, string>;
  /** The count of each bucket alone, not cumulative, with the bucket above the last bound. */
  counts: number[];
  sum: number;
}

/**
 * A histogram with a series for each node. prom-client keeps the counts of a series in an object whose keys are the
 * bounds, and V8 turns whole numbers into an array as long as the highest bound: 28 KiB for a series with a bound of
 * 3,600 s, and 70 MiB for 2,500 nodes. Here a series takes some 300 bytes, and the number of series is limited.
 */
export class CompactHistogram<Label extends string> {
  readonly name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, HistogramSeries<Label>>();

  /** @param options.buckets upper bounds, ascending. */
  constructor(options: { name: string; help: string; buckets: readonly number[]; registry: Registry }) {
    this.name = options.name;
    this.#help = options.help;
    this.#bounds = options.buckets;
    // A registry uses only the name and `get` of a metric.
    options.registry.registerMetric(this as unknown as Histogram);
  }

  /** @param labels with the same keys in the same order each time. */
  observe(labels: Record<Label, string>, value: number): void {
    const key = JSON.stringify(labels);
    const series = this.#series.get(key) ?? { labels, counts: this.#noCounts(), sum: 0 };
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    const index = bucket < 0 ? this.#bounds.length : bucket;
    series.counts[index] = (series.counts[index] ?? 0) + 1;
    series.sum += value;
    this.#series.set(key, series);
    if (this.#series.size > SERIES_MAX) this.#forgetOldest();
  }

  /** Removes the series whose labels are `isGone`. */
  removeIf(isGone: (labels: Readonly<Record<Label, string>>) => boolean): void {
    for (const [key, { labels }] of this.#series) if (isGone(labels)) this.#series.delete(key);
  }

  /** What prom-client's registry prints. */
  async get() {
    const values = [...this.#series.values()].flatMap(({ labels, counts, sum }) => {
      let count = 0;
      const buckets = [...this.#bounds, "+Inf"].map((le, index) => {
        count += counts[index] ?? 0;
        return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${this.name}_sum`, labels, value: sum },
        { metricName: `${this.name}_count`, labels, value: count },
      ];
    });
    return { name: this.name, help: this.#help, type: "histogram", aggregator: "sum", values };
  }

  #noCounts(): number[] {
    return Array.from({ length: this.#bounds.length + 1 }, () => 0);
  }

  #forgetOldest(): void {
    for (const key of this.#series.keys()) {
      this.#series.delete(key);
      return;
    }
  }
}
