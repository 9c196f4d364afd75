import type { Act, Fault, Outcome, Run } from "./run.ts";

/** The most runs that a shrink may play. */
const TRIES_MAX = 400;
/** The same for the long runs of a rack, which take seconds. They are recognized by their number of parts. */
const LONG_PARTS_MIN = 100;
const LONG_TRIES_MAX = 60;

/**
 * Removes everything from a run that is not needed to break the same rule: acts and faults, first half of them at a
 * time, then one by one, and finally options of its shape.
 *
 * @returns the shortest run found that breaks a rule of the same name.
 */
export async function shrink(run: Run, invariant: string, play: (run: Run) => Promise<Outcome>): Promise<Run> {
  let shortest = run;
  const triesMax = partsOf(run) >= LONG_PARTS_MIN ? LONG_TRIES_MAX : TRIES_MAX;
  let tries = 0;
  const breaks = async (candidate: Run): Promise<boolean> => {
    tries += 1;
    if (tries > triesMax) return false;
    const { violations } = await play(candidate);
    const isSame = violations.some((violation) => violation.invariant === invariant);
    if (isSame) shortest = candidate;
    return isSame;
  };
  for (let size = Math.max(1, partsOf(run) >> 1); size >= 1; size = size === 1 ? 0 : size >> 1) {
    for (let at = 0; at < partsOf(shortest);) {
      if (!(await breaks(without(shortest, at, size)))) at += size;
    }
  }
  for (const key of ["latencyMs", "detector", "agents", "hosts"] as const) {
    if (shortest.shape[key] === undefined) continue;
    const { [key]: _dropped, ...shape } = shortest.shape;
    await breaks({ ...shortest, shape });
  }
  return shortest;
}

function partsOf({ script, faults }: Run): number {
  return script.length + faults.length;
}

/** The run without `size` of its parts, beginning with the one at `at`. */
function without(run: Run, at: number, size: number): Run {
  const parts: ({ act: Act } | { fault: Fault })[] = [
    ...run.script.map((act) => ({ act })),
    ...run.faults.map((fault) => ({ fault })),
  ];
  parts.splice(at, size);
  return {
    ...run,
    script: parts.flatMap((part) => ("act" in part ? [part.act] : [])),
    faults: parts.flatMap((part) => ("fault" in part ? [part.fault] : [])),
  };
}
