import type { Edit } from "./edit.ts";
import type { Reach } from "./reach.ts";
import { MutantWorkshop } from "./workshop.ts";

/** A mutant to be played. */
export interface Candidate {
  id: string;
  edit: Edit;
  /** Test files, of which one must fail. All files of a tier are run before those of the next tier. */
  tiers: readonly (readonly string[])[];
}

/** The result of a mutant. */
export interface Played<T extends Candidate = Candidate> {
  mutant: T;
  /** The failed test with its message; undefined if the mutant lives. */
  killedBy: string | undefined;
  /** The number of test files that run its code. */
  testFiles: number;
}

interface Options<T extends Candidate> {
  /** Whether test files that do not reach the code of a mutant are skipped. */
  byReach: boolean;
  /** Whether a mutant that no test kills counts as killed if it does not compile. */
  checkTypes: boolean;
  /** The minimum timeout of a test file with a mutant in place. */
  timeoutMinMs: number;
  /** Called for each mutant when its result is known. */
  onPlayed: (played: Played<T>) => void;
}

interface AsItIs {
  tookMs: number;
  reach: Reach | undefined;
}

/** The number of copies of the tree in which tests run at the same time. CI has two cores. */
const WORKERS = 2;
/** Timeout of one test file on the unchanged code. */
const BASELINE_TIMEOUT_MS = 180_000;
/**
 * With a mutant, a test file may wait for an event that never comes. Its timeout is this many times its time on the
 * unchanged code.
 */
const PATIENCE = 10;

/**
 * Plays the mutants in copies of the tree. If test files fail on the unchanged code, it plays nothing and returns these
 * files.
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
  // However this function ends, no test keeps running in a deleted copy.
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

/** Runs `work` with each mutant in place. @returns the mutants that are still alive. */
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

/** Runs test files with the mutant in place, the fastest one first. */
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

/** Runs each test file on the unchanged code. */
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
