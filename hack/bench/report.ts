/** Prints one figure. */
export function row(what: string, value: string): void {
  console.log(`${what.padEnd(64)} ${value}`);
}

/** One figure that has an aim. */
export interface Figure {
  what: string;
  value: number;
  /** For example, `MiB`; empty for a count. */
  unit: string;
  /** The highest value that meets the aim. */
  aim: number;
  /** Whether a higher value fails the run. Times depend on the load of the machine; counts and ratios do not. */
  fails: boolean;
}

const figures: Figure[] = [];

/** Prints a figure with its aim, and keeps it for the table. */
export function figure(kept: Figure): void {
  figures.push(kept);
  row(kept.what, `${withUnit(kept)} (aim: ${kept.aim})`);
  if (isMissed(kept)) process.exitCode = 1;
}

/** Prints all figures that have aims. */
export function printFigures(): void {
  console.log(`\n| figure | measured | aim | |\n|---|---|---|---|`);
  for (const kept of figures) {
    const { what, value, aim } = kept;
    const verdict = value <= aim ? "reached" : isMissed(kept) ? "MISSED" : "above its aim on this machine";
    console.log(`| ${what} | ${withUnit(kept)} | ≤ ${aim} | ${verdict} |`);
  }
}

function isMissed({ value, aim, fails }: Figure): boolean {
  return fails && !(value <= aim);
}

function withUnit({ value, unit }: Figure): string {
  const text = value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(2);
  return unit === "" ? text : `${text} ${unit}`;
}

/** The value below which `share` of the values lie (nearest rank). @param share between 0 and 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Whole mebibytes. */
export const mib = (bytes: number): string => (bytes / 1_048_576).toFixed(0);

/** CPU or other time, in seconds. */
export const seconds = (ms: number): string => (ms / 1_000).toFixed(2);

/** Formats the distribution of values in milliseconds. */
export function spread(values: readonly number[]): string {
  const ms = (value: number): string => value.toFixed(0);
  return `p50 ${ms(median(values))} ms, p99 ${ms(quantile(values, 0.99))} ms, max ${ms(Math.max(...values))} ms`;
}
