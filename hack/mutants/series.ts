import type { Edit } from "./edit.ts";
import type { Reach } from "./reach.ts";
import { MutantWorkshop } from "./workshop.ts";

/** A mutant that is to be played. */
export interface Candidate {
  id: string;
  edit: Edit;
  /** Test files of which one must fail. All of a tier are tried before the next one is. */
  tiers: readonly (readonly string[])[];
}

/** The result of a mutant. */
export interface Played<T extends Candidate = Candidate> {
  mutant: T;
  /** The test that failed, and what it says; undefined where the mutant lives. */
  killedBy: string | undefined;
  /** How many test files have run its code. */
  testFiles: number;
}

interface Options<T extends Candidate> {
  /** A test file that does not run the code of a mutant is not tried on it. */
  byReach: boolean;
  /** A mutant that lives counts as killed where it does not compile. */
  checkTypes: boolean;
  /** Time for a test file with a mutant in place, at the least. */
  timeoutMinMs: number;
  /** Called for each mutant whose fate is known. */
  onPlayed: (played: Played<T>) => void;
}

interface AsItIs {
  tookMs: number;
  reach: Reach | undefined;
}

/** Copies of the tree in which tests run at the same time: CI has two cores. */
const WORKERS = 2;
/** Time for one test file on the code as it is. */
const BASELINE_TIMEOUT_MS = 180_000;
/**
 * With a mutant in place a file may wait for what never comes, and fails then; it is given so much longer than without.
 */
const PATIENCE = 10;

/**
 * Plays the mutants in copies of the tree. Returns the test files that fail on the code as it is: nothing is played
 * then.
 */
export async function playSeries<T extends Candidate>(
  mutants: readonly T[],
  options: Options<T>,
): Promise<readonly string[]> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort(new Error(name)));
  await using opened = new AsyncDisposableStack();
  const workshops: MutantWorkshop[] = [];
  while (workshops.length < WORKERS) workshops.push(opened.use(await MutantWorkshop.open()));
  // Whatever ends this, no test runs on in a copy that is gone.
  opened.defer(() => stop.abort(new Error("the run has ended")));

  let alive = mutants.map((mutant): Played<T> => ({ mutant, killedBy: undefined, testFiles: 0 }));
  const tiers = Math.max(0, ...mutants.map((mutant) => mutant.tiers.length));
  for (let tier = 0; tier < tiers && alive.length > 0; tier += 1) {
    const testFiles = alive.flatMap(({ mutant }) => mutant.tiers[tier] ?? []);
    const { runs, broken } = await runAsItIs(workshops, testFiles, options.byReach, stop.signal);
    if (broken.length > 0) return broken;
    alive = await sift(workshops, alive, options, (workshop, played) =>
      runTier(workshop, played, tier, runs, options.timeoutMinMs, stop.signal),
    );
  }
  if (options.checkTypes) {
    alive = await sift(workshops, alive, options, async (workshop, played) => ({
      ...played,
      killedBy: (await workshop.compiles(stop.signal)) ? undefined : "it does not compile",
    }));
  }
  for (const played of alive) options.onPlayed(played);
  return [];
}

/** Does `work` with each mutant in place. Those that live on go back to the caller. */
async function sift<T extends Candidate>(
  workshops: readonly MutantWorkshop[],
  candidates: readonly Played<T>[],
  { onPlayed }: Options<T>,
  work: (workshop: MutantWorkshop, played: Played<T>) => Promise<Played<T>>,
): Promise<Played<T>[]> {
  const alive: Played<T>[] = [];
  await inParallel(workshops, candidates, async (workshop, candidate) => {
    const played = await workshop.withEdit(candidate.mutant.edit, () => work(workshop, candidate));
    if (played.killedBy === undefined) alive.push(played);
    else onPlayed(played);
  });
  return alive;
}

/** The mutant is in place. The test file that takes the least time comes first. */
async function runTier<T extends Candidate>(
  workshop: MutantWorkshop,
  played: Played<T>,
  tier: number,
  asItIs: ReadonlyMap<string, AsItIs>,
  timeoutMinMs: number,
  signal: AbortSignal,
): Promise<Played<T>> {
  const { edit, tiers } = played.mutant;
  const tookMs = (file: string): number => asItIs.get(file)?.tookMs ?? 0;
  const files = (tiers[tier] ?? [])
    .filter((file) => asItIs.get(file)?.reach?.has(edit.file, edit.start) ?? true)
    .toSorted((a, b) => tookMs(a) - tookMs(b));
  const testFiles = played.testFiles + files.length;
  for (const file of files) {
    const timeoutMs = Math.ceil(Math.max(PATIENCE * tookMs(file), timeoutMinMs));
    const { failed } = await workshop.run(file, timeoutMs, signal);
    if (failed !== undefined) return { ...played, testFiles, killedBy: `${file}: ${failed}` };
  }
  return { ...played, testFiles };
}

/** Runs each of the test files on the code as it is. */
async function runAsItIs(
  workshops: readonly MutantWorkshop[],
  testFiles: readonly string[],
  byReach: boolean,
  signal: AbortSignal,
): Promise<{ runs: ReadonlyMap<string, AsItIs>; broken: readonly string[] }> {
  const startMs = performance.now();
  const files = [...new Set(testFiles)];
  const runs = new Map<string, AsItIs>();
  const broken: string[] = [];
  await inParallel(workshops, files, async (workshop, file) => {
    const { run, reach } = byReach
      ? await workshop.runWithReach(file, BASELINE_TIMEOUT_MS, signal)
      : { run: await workshop.run(file, BASELINE_TIMEOUT_MS, signal), reach: undefined };
    if (run.failed !== undefined) broken.push(`${file}: ${run.failed}`);
    runs.set(file, { tookMs: run.tookMs, reach });
  });
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(0);
  process.stdout.write(`mutants: ${files.length} test files on the code as it is took ${seconds} s\n`);
  return { runs, broken };
}

async function inParallel<T>(
  workshops: readonly MutantWorkshop[],
  items: readonly T[],
  work: (workshop: MutantWorkshop, item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  await Promise.all(
    workshops.map(async (workshop) => {
      for (const item of queue) await work(workshop, item);
    }),
  );
}
