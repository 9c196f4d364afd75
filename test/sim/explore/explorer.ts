import type { Coverage } from "./coverage.ts";
import { count, noCoverage } from "./coverage.ts";
import type { ModeDeps } from "./modes.ts";
import { ENDLESS, MODES } from "./modes.ts";
import { play } from "./play.ts";
import type { Outcome, Run } from "./run.ts";
import { shrink } from "./shrink.ts";

export interface ExploreOptions {
  modes: readonly string[];
  /** Names of the scenarios to play. */
  names: readonly string[];
  seed: number;
  /** This worker's share: every `of`-th run, beginning with the one at `share`. */
  share: number;
  of: number;
  /** Whether to continue after this number of runs of the worker. */
  goesOn(runs: number): boolean;
  /** Called before every run. */
  onBegin?(run: Run): void;
  /** Called after every run. */
  onRun?(coverage: Coverage): void;
  /** Called with a broken rule when its run is shortened. */
  onFinding?(finding: Finding): void;
}

/** A rule that a run broke, with the original run and the shortest run that breaks it. */
export interface Finding {
  mode: string;
  invariant: string;
  what: string;
  run: Run;
  shortest: Run;
  /** The shortest run, as a story. */
  story: readonly string[];
}

/** A worker stops after this many findings, because one bug breaks many runs. */
const FINDINGS_MAX = 5;

/** Plays one worker's share of the runs of all modes, and shortens runs that break a rule. */
export async function explore(options: ExploreOptions): Promise<{ coverage: Coverage; findings: Finding[] }> {
  const { share, of } = options;
  const coverage = noCoverage();
  const findings: Finding[] = [];
  const isOver = (): boolean => findings.length >= FINDINGS_MAX || !options.goesOn(coverage.runs);
  const playOne = async (mode: string, run: Run): Promise<void> => {
    options.onBegin?.(run);
    const outcome = await play(run);
    count(coverage, mode, run, outcome);
    const [first] = outcome.violations;
    const isKnown = findings.some((finding) => finding.invariant === first?.invariant && finding.run.name === run.name);
    if (first !== undefined && !isKnown) {
      const finding = await findingOf(mode, run, first);
      findings.push(finding);
      options.onFinding?.(finding);
    }
    options.onRun?.(coverage);
  };
  const begin = beginnings(options);
  for (const mode of options.modes.filter((name) => !ENDLESS.includes(name))) {
    let at = 0;
    for await (const run of begin(mode)) {
      if (isOver()) return { coverage, findings };
      // A mode that distributes its work itself yields only the runs of this worker.
      if (SHARED_BY_ITSELF.includes(mode) || at % of === share) await playOne(mode, run);
      at += 1;
    }
  }
  const endless = options.modes.filter((name) => ENDLESS.includes(name)).map((mode) => ({ mode, runs: begin(mode) }));
  for (let at = 0; endless.length > 0; at += 1) {
    for (const { mode, runs } of endless) {
      if (isOver()) return { coverage, findings };
      const { value } = await runs.next();
      if (value !== undefined && at % of === share) await playOne(mode, value);
    }
  }
  return { coverage, findings };
}

/** Returns the runs of each mode. A run whose points several modes need is played once. */
function beginnings({ names, seed, share, of }: ExploreOptions): (mode: string) => AsyncGenerator<Run, void> {
  const asked = new Map<string, ReturnType<ModeDeps["play"]>>();
  const playAsked: ModeDeps["play"] = (run) => {
    const key = JSON.stringify(run);
    const points = asked.get(key) ?? play(run).then(({ effects, calls, events }) => ({ effects, calls, events }));
    if (asked.size < ASKED_MAX) asked.set(key, points);
    return points;
  };
  return (mode) => {
    const generate = MODES[mode];
    if (generate === undefined) throw new Error(`no mode is named ${mode}: there are ${Object.keys(MODES).join(", ")}`);
    return generate({ play: playAsked, names, seed, mine: (part) => part % of === share });
  };
}

/** The number of runs whose points are cached: more than there are scenarios. */
const ASKED_MAX = 200;
const SHARED_BY_ITSELF: readonly string[] = ["pairs"];

async function findingOf(mode: string, run: Run, { invariant, what }: Outcome["violations"][number]): Promise<Finding> {
  const shortest = await shrink(run, invariant, play);
  const { story } = await play(shortest, { story: true });
  return { mode, invariant, what, run, shortest, story };
}

const SEEDED: Readonly<Record<string, string>> = { walk: "--seed", rack: "--rack", world: "--world" };

/** Prints a finding: the broken rule, the story, and how to replay it. */
export function tellFinding({ mode, invariant, what, run, shortest, story }: Finding): string {
  const parts = (one: Run): string => `${one.script.length} acts and ${one.faults.length} faults`;
  return [
    `${invariant} is broken (mode ${mode}, ${run.name}, seed ${run.seed}): ${what}`,
    `shrunk from ${parts(run)} to ${parts(shortest)}:`,
    ...story.map((line) => `  ${line}`),
    `play it again:  npm run sim -- --replay '${JSON.stringify(shortest)}'`,
    ...(run.name in SEEDED && run.shape.driven === undefined
      ? [`all of it:      npm run sim -- ${SEEDED[run.name] ?? ""} ${run.seed}`]
      : []),
  ].join("\n");
}
