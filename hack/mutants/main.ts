import { seededRandom } from "../../test/lib/seeded-random.ts";
import { parseOptions } from "../lib/options.ts";
import { generatedCandidates } from "./generated/candidates.ts";
import { MUTANTS } from "./named/all.ts";
import { editOf } from "./named/mutant.ts";
import type { Candidate, Played } from "./series.ts";
import { playSeries } from "./series.ts";
import { SourceTexts } from "./source-texts.ts";

const HELP = `Breaks our own code on purpose, and runs the tests that must fail.

  npm run mutants -- [--only ID]... [--sample N [--seed S]] [--list]
  npm run mutants -- --generated [--file FILE[:LINE]]... [--sample N [--seed S]] [--list]

A named mutant breaks one rule, usually a safety rule, and names the test files, of which one must fail. Generated mutants are
small changes that a tool derives from the syntax tree: of all synchronous files of the detector and the remediator that decide,
or of the files that --file names. The test files of the folder are run for them. A change that does not compile counts as killed.

  --only ID      only this mutant; may be repeated
  --file FILE    generated mutants of this file, or of one line of it; may be repeated
  --sample N     N random mutants; by default all are played
  --seed S       seed of the random choice; it is printed, so that a run can be repeated on the same code
  --list         prints the mutants and runs nothing

It works in copies of the tree. Each test file runs once on the unchanged code, and then for each mutant until the first failure.
It exits with 0 only if all pass on the unchanged code and every mutant is killed.
`;

const values = parseOptions({
  help: { type: "boolean", short: "h", default: false },
  list: { type: "boolean", default: false },
  generated: { type: "boolean", default: false },
  file: { type: "string", multiple: true },
  only: { type: "string", multiple: true },
  sample: { type: "string" },
  seed: { type: "string" },
});

/** A mutant with its text for the report. */
interface Reported extends Candidate {
  says: string;
}

/** The minimum timeout of a test file with a named mutant in place. */
const NAMED_TIMEOUT_MIN_MS = 60_000;
/** The same for generated mutants. There are many of them, and more of them loop forever. */
const GENERATED_TIMEOUT_MIN_MS = 20_000;

function namedCandidates(): readonly Reported[] {
  const unknown = values.only?.find((id) => MUTANTS.every((mutant) => mutant.id !== id));
  if (unknown !== undefined) refuse(`There is no mutant ${unknown}. Give --list for all of them.`);
  const texts = SourceTexts.read();
  return MUTANTS.filter(({ id }) => values.only?.includes(id) ?? true).map((mutant) => {
    const edit = editOf(mutant, texts);
    return { id: mutant.id, edit, says: `${mutant.rule} (${edit.file})`, tiers: [mutant.killers] };
  });
}

function sample<T>(mutants: readonly T[]): readonly T[] {
  if (values.sample === undefined) return mutants;
  const count = Number(values.sample);
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  if (!Number.isInteger(count) || count < 1) refuse("--sample must be a whole number above 0.");
  if (!Number.isInteger(seed)) refuse("--seed must be a whole number.");
  process.stdout.write(`mutants: a sample of ${count} of ${mutants.length}, --seed ${seed}\n`);
  const random = seededRandom(seed);
  return mutants
    .map((mutant) => ({ mutant, lot: random.next() }))
    .toSorted((a, b) => a.lot - b.lot)
    .slice(0, count)
    .map(({ mutant }) => mutant);
}

function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

async function main(mutants: readonly Reported[]): Promise<number> {
  const lived: string[] = [];
  const report = ({ mutant, killedBy, testFiles }: Played<Reported>): void => {
    if (killedBy === undefined) lived.push(mutant.id);
    const verdict = killedBy === undefined ? "LIVED " : "killed";
    const by = killedBy ?? (testFiles === 0 ? "no test file runs this code" : `${testFiles} test files run this code`);
    process.stdout.write(`${verdict}  ${mutant.id}: ${mutant.says}\n        ${by}\n`);
  };
  const broken = await playSeries(mutants, {
    byReach: values.generated,
    checkTypes: values.generated,
    timeoutMinMs: values.generated ? GENERATED_TIMEOUT_MIN_MS : NAMED_TIMEOUT_MIN_MS,
    onPlayed: report,
  });
  for (const failure of broken) process.stdout.write(`the code as it is fails ${failure}\n`);
  if (broken.length > 0) return 1;
  const list = lived.length === 0 ? "" : `:\n  ${lived.join("\n  ")}`;
  const seconds = (performance.now() / 1_000).toFixed(0);
  process.stdout.write(
    `mutants: ${mutants.length - lived.length} killed, ${lived.length} lived in ${seconds} s${list}\n`,
  );
  return lived.length === 0 ? 0 : 1;
}

if (values.help) process.stdout.write(HELP);
else {
  const mutants = sample(values.generated ? await generatedCandidates(values.file) : namedCandidates());
  if (values.list) for (const { id, says } of mutants) process.stdout.write(`${id}: ${says}\n`);
  else process.exitCode = await main(mutants);
}
