/** Prints one figure. */
export function row(what: string, value: string): void {
  console.log(`${what.padEnd(64)} ${value}`);
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

/** How values in milliseconds are spread. */
export function spread(values: readonly number[]): string {
  const ms = (value: number): string => value.toFixed(0);
  return `p50 ${ms(median(values))} ms, p99 ${ms(quantile(values, 0.99))} ms, max ${ms(Math.max(...values))} ms`;
}
