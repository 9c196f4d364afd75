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
