import type { Coverage } from "./coverage.ts";
import { count, noCoverage } from "./coverage.ts";
import { MODES } from "./modes.ts";
import { play } from "./play.ts";
import type { Outcome, Run } from "./run.ts";
import { shrink } from "./shrink.ts";

export interface ExploreOptions {
  modes: readonly string[];
  /** Scenarios to be played. */
  names: readonly string[];
  seed: number;
  /** This worker's share: every `of`-th run, beginning with the one at `share`. */
  share: number;
  of: number;
  /** Whether to go on after so many runs of this worker. */
  goesOn(runs: number): boolean;
  /** Told after every run. */
  onRun?(coverage: Coverage): void;
}

/** A rule that a run broke: the run as it was, and as short as it could be made. */
export interface Finding {
  mode: string;
  invariant: string;
  what: string;
  run: Run;
  shortest: Run;
  /** The shortest run, told. */
  story: readonly string[];
}

/** Findings after which a worker stops: one bug breaks many runs. */
const FINDINGS_MAX = 5;

/** Plays one worker's share of the runs of all modes, and shrinks what breaks a rule. */
export async function explore(options: ExploreOptions): Promise<{ coverage: Coverage; findings: Finding[] }> {
  const { names, seed, share, of } = options;
  const coverage = noCoverage();
  const findings: Finding[] = [];
  const isOver = (): boolean => findings.length >= FINDINGS_MAX || !options.goesOn(coverage.runs);
  for (const mode of options.modes) {
    const playOne = async (run: Run): Promise<Outcome> => {
      const outcome = await play(run);
      count(coverage, mode, run, outcome);
      const [first] = outcome.violations;
      const isKnown = findings.some(
        (finding) => finding.invariant === first?.invariant && finding.run.name === run.name,
      );
      if (first !== undefined && !isKnown) findings.push(await findingOf(mode, run, first));
      options.onRun?.(coverage);
      return outcome;
    };
    const mine = (at: number): boolean => at % of === share;
    const generate = MODES[mode];
    if (generate === undefined) throw new Error(`no mode is named ${mode}: there are ${Object.keys(MODES).join(", ")}`);
    let at = 0;
    for await (const run of generate({ play: playOne, names, seed, mine })) {
      if (isOver()) break;
      // A mode that shares its work out itself leaves nothing to others here.
      if (SHARED_BY_ITSELF.includes(mode) || mine(at)) await playOne(run);
      at += 1;
    }
    if (isOver()) break;
  }
  return { coverage, findings };
}

const SHARED_BY_ITSELF: readonly string[] = ["pairs"];

async function findingOf(mode: string, run: Run, { invariant, what }: Outcome["violations"][number]): Promise<Finding> {
  const shortest = await shrink(run, invariant, play);
  const { story } = await play(shortest, { story: true });
  return { mode, invariant, what, run, shortest, story };
}

/** A finding as it is printed: what broke, how it came to that, and how to see it again. */
export function tellFinding({ mode, invariant, what, run, shortest, story }: Finding): string {
  const parts = (one: Run): string => `${one.script.length} acts and ${one.faults.length} faults`;
  return [
    `${invariant} is broken (mode ${mode}, ${run.name}, seed ${run.seed}): ${what}`,
    `shrunk from ${parts(run)} to ${parts(shortest)}:`,
    ...story.map((line) => `  ${line}`),
    `play it again:  npm run sim -- --replay '${JSON.stringify(shortest)}'`,
    ...(run.name === "walk" ? [`all of it:      npm run sim -- --seed ${run.seed}`] : []),
  ].join("\n");
}
