import { parseArgs } from "node:util";
import { seededRandom } from "../../test/lib/seeded-random.ts";
import { MUTANTS } from "./mutants.ts";
import type { Mutant } from "./mutant.ts";
import { MutantWorkshop } from "./workshop.ts";

const HELP = `Breaks our own code on purpose, one rule at a time, and runs the tests that must notice.

  npm run mutants -- [--sample N [--seed S]] [--only ID] [--list]

  --sample N   so many mutants by chance; all where absent
  --seed S     which ones; printed, so that a run can be repeated
  --only ID    this one alone
  --list       prints them, and runs nothing

It works in a copy of the tree. It ends with 0 only if the tests pass on the code as it is, and every mutant is killed.
`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h", default: false },
    list: { type: "boolean", default: false },
    sample: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
  },
});

function choose(): readonly Mutant[] {
  if (values.only !== undefined) {
    const chosen = MUTANTS.filter(({ id }) => id === values.only);
    if (chosen.length === 0) throw new Error(`there is no mutant ${values.only}: see --list`);
    return chosen;
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

async function main(mutants: readonly Mutant[]): Promise<number> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort(new Error(name)));
  await using workshop = await MutantWorkshop.open();
  const files = [...new Set(mutants.flatMap(({ killers }) => killers))];
  const baseline = await workshop.run(files, stop.signal);
  if (baseline.failed !== undefined) {
    process.stdout.write(`the code as it is fails: ${baseline.failed}\n`);
    return 1;
  }
  const lived: string[] = [];
  for (const mutant of mutants) {
    const { failed } = await workshop.try(mutant, stop.signal);
    if (failed === undefined) lived.push(mutant.id);
    const verdict = failed === undefined ? "LIVED " : "killed";
    process.stdout.write(`${verdict}  ${mutant.id}: ${mutant.rule}\n        ${failed ?? mutant.killers.join(", ")}\n`);
  }
  const seconds = (performance.now() / 1_000).toFixed(0);
  const list = lived.length === 0 ? "" : `: ${lived.join(", ")}`;
  process.stdout.write(
    `mutants: ${mutants.length - lived.length} killed, ${lived.length} lived${list}; ${seconds} s\n`,
  );
  return lived.length === 0 ? 0 : 1;
}

if (values.help) process.stdout.write(HELP);
else if (values.list) {
  for (const { id, rule, file } of MUTANTS) process.stdout.write(`${id}: ${rule} (${file})\n`);
} else process.exitCode = await main(choose());
