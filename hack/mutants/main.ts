import { parseArgs } from "node:util";
import { seededRandom } from "../../test/lib/seeded-random.ts";
import { MUTANTS } from "./named/all.ts";
import type { Mutant } from "./named/mutant.ts";
import { editOf } from "./named/mutant.ts";
import { SourceTexts } from "./source-texts.ts";
import type { TestRun } from "./run-tests.ts";
import { MutantWorkshop } from "./workshop.ts";

const HELP = `Breaks our own code on purpose, one rule at a time, and runs the tests that must notice.

  npm run mutants -- [--sample N [--seed S]] [--only ID]... [--list]

  --sample N   so many mutants by chance; all where absent
  --seed S     which ones; printed, so that a run can be repeated
  --only ID    this mutant; give the option again for each further one
  --list       prints them, and runs nothing

It works in copies of the tree. Each test file that is named runs once on the code as it is, then once for each mutant of its own, up to
the first failure. It ends with 0 only if all pass on the code as it is, and every mutant is killed.
`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h", default: false },
    list: { type: "boolean", default: false },
    sample: { type: "string" },
    seed: { type: "string" },
    only: { type: "string", multiple: true },
  },
});

function choose(): readonly Mutant[] {
  if (values.only !== undefined) {
    return values.only.map((wanted) => {
      const mutant = MUTANTS.find(({ id }) => id === wanted);
      if (mutant === undefined) throw new Error(`there is no mutant ${wanted}: see --list`);
      return mutant;
    });
  }
  if (values.sample === undefined) return MUTANTS;
  const count = Number(values.sample);
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  if (!Number.isInteger(count) || count < 1) throw new Error("--sample must be a whole number above 0");
  if (!Number.isInteger(seed)) throw new Error("--seed must be a whole number");
  process.stdout.write(`mutants: a sample of ${count} of ${MUTANTS.length}, --seed ${seed}\n`);
  const random = seededRandom(seed);
  return MUTANTS.map((mutant) => ({ mutant, lot: random.next() }))
    .toSorted((a, b) => a.lot - b.lot)
    .slice(0, count)
    .map(({ mutant }) => mutant);
}

/** Copies of the tree in which tests run at the same time: CI has two cores. */
const WORKERS = 2;
/** Time for one test file on the code as it is. */
const BASELINE_TIMEOUT_MS = 180_000;
/** With a mutant in place a file may wait for what never comes, and fails then; it is given so much longer than without, and no less. */
const PATIENCE = 10;
const TIMEOUT_MIN_MS = 60_000;

async function main(mutants: readonly Mutant[]): Promise<number> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort(new Error(name)));
  await using opened = new AsyncDisposableStack();
  const workshops: MutantWorkshop[] = [];
  while (workshops.length < WORKERS) workshops.push(opened.use(await MutantWorkshop.open()));
  // Whatever ends this, no test runs on in a copy that is gone.
  opened.defer(() => stop.abort(new Error("the run has ended")));
  const baseline = await runAsItIs(workshops, mutants, stop.signal);
  const broken = [...baseline].filter(([, { failed }]) => failed !== undefined);
  for (const [file, { failed }] of broken) process.stdout.write(`the code as it is fails ${file}: ${failed}\n`);
  if (broken.length > 0) return 1;

  const tookMs = (file: string): number => baseline.get(file)?.tookMs ?? 0;
  const timeoutMs = (file: string): number => Math.ceil(Math.max(PATIENCE * tookMs(file), TIMEOUT_MIN_MS));
  const lived: string[] = [];
  const texts = SourceTexts.read();
  await inParallel(workshops, mutants, async (workshop, mutant) => {
    const killers = mutant.killers.toSorted((a, b) => tookMs(a) - tookMs(b));
    const killedBy = await workshop.withEdit(editOf(mutant, texts), async () => {
      for (const file of killers) {
        const { failed } = await workshop.run(file, timeoutMs(file), stop.signal);
        if (failed !== undefined) return `${file}: ${failed}`;
      }
      return undefined;
    });
    if (killedBy === undefined) lived.push(mutant.id);
    const verdict = killedBy === undefined ? "LIVED " : "killed";
    process.stdout.write(`${verdict}  ${mutant.id}: ${mutant.rule}\n        ${killedBy ?? killers.join(", ")}\n`);
  });
  const list = lived.length === 0 ? "" : `: ${lived.join(", ")}`;
  process.stdout.write(
    `mutants: ${mutants.length - lived.length} killed, ${lived.length} lived${list}; ${seconds()} s\n`,
  );
  return lived.length === 0 ? 0 : 1;
}

/** Every test file that is to kill one of the mutants, on the code as it is. */
async function runAsItIs(
  workshops: readonly MutantWorkshop[],
  mutants: readonly Mutant[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, TestRun>> {
  const files = [...new Set(mutants.flatMap(({ killers }) => killers))];
  const runs = new Map<string, TestRun>();
  await inParallel(workshops, files, async (workshop, file) => {
    runs.set(file, await workshop.run(file, BASELINE_TIMEOUT_MS, signal));
  });
  process.stdout.write(`mutants: ${files.length} test files on the code as it is took ${seconds()} s\n`);
  return runs;
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

function seconds(): string {
  return (performance.now() / 1_000).toFixed(0);
}

if (values.help) process.stdout.write(HELP);
else if (values.list) {
  for (const { id, rule, file } of MUTANTS) process.stdout.write(`${id}: ${rule} (${file})\n`);
} else process.exitCode = await main(choose());
