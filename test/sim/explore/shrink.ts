import type { Act, Fault, Outcome, Run } from "./run.ts";

/** Runs that a shrink may cost. */
const TRIES_MAX = 400;
/** The same for a run of so many parts that it is a rack's, which takes seconds. */
const LONG_PARTS_MIN = 100;
const LONG_TRIES_MAX = 60;

/**
 * Takes out of a run whatever it does not need to break the same rule: acts and faults, half of them at a time, then
 * one by one, then what is special about its shape.
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

/** The run without so many of its parts, beginning with the one at `at`. */
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
