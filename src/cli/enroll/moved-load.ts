import type { PowerDriver } from "../../bmc/interface/driver.ts";

// If there are one or two outlets, the switching itself shows that each feeds the host: it runs without either, and not
// without both. If there are more, one may feed nothing or another host. Then the load has to show that an outlet feeds
// the host: while it is off, the other supplies of the host take its load over.

/**
 * If the load is even, each of the other outlets takes over an equal part. A rise by this share of that part is enough.
 */
const PART_MIN = 0.5;

/** What the meter of each outlet shows, in units that may differ; undefined without a meter. */
export type Loads = readonly (number | undefined)[];

export async function readLoads(outlets: readonly PowerDriver[], signal: AbortSignal): Promise<Loads> {
  const readings = await Promise.all(outlets.map((outlet) => outlet.readPower(signal)));
  return readings.map(({ load }) => load);
}

/** What the meters of the other outlets of a host show before, while and after one outlet is off. */
export interface OtherLoads {
  before: Loads;
  without: Loads;
  after: Loads;
}

/**
 * The smallest rise that counts, in the unit of the meter. A smaller one may be a meter that jumps between two values.
 */
const STEPS_MIN = 2;

/** Whether every other outlet of the host has carried more while the outlet was off, and only then. */
export function hasMoved({ before, without, after }: OtherLoads): boolean {
  const partMin = PART_MIN / without.length;
  const isHigher = (load: number | undefined, than: number | undefined): boolean =>
    load !== undefined && than !== undefined && load >= than + STEPS_MIN && load > than * (1 + partMin);
  return without.every((load, index) => isHigher(load, before[index]) && isHigher(load, after[index]));
}
