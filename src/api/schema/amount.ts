/** A number of nodes, or a share of them. */
export type Amount = { unit: "nodes"; count: number } | { unit: "percent"; percent: number };

const AMOUNT = /^(?:(100|[0-9]{1,2})%|([0-9]{1,9}))$/;

/** Reads `3`, `"3"` or `"40%"`; undefined for anything else: negative, fractional, over 100 %. */
export function parseAmount(value: number | string): Amount | undefined {
  const match = AMOUNT.exec(String(value));
  if (match === null) return undefined;
  const [, percent, count] = match;
  return percent === undefined
    ? { unit: "nodes", count: Number(count) }
    : { unit: "percent", percent: Number(percent) };
}
