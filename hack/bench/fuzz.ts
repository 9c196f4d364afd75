import * as fc from "fast-check";
import { systemRandom } from "../../src/runtime/system.ts";
import { fuzzProperty } from "../fuzz/property.ts";
import type { FuzzTarget } from "../fuzz/target.ts";
import { FUZZ_TARGETS } from "../fuzz/targets.ts";
import { row } from "./report.ts";

/** What one run of the fuzzer covers. */
export interface FuzzOptions {
  /** The total number of inputs, split evenly between the parsers. */
  inputCount: number;
  /** The time for each parser, instead of a number of inputs. */
  minutesEach: number | undefined;
  /** The names of the parsers; all of them by default. */
  parsers: readonly string[] | undefined;
}

const MINUTE_MS = 60_000;
/** Runs of one seed: the generator keeps what it needs to make inputs smaller, so rounds are bounded. */
const ROUND_INPUTS = 200_000;

/**
 * Feeds random inputs to the parsers of external data. The first failure ends the run and prints the seed and the
 * smallest input that fails as well.
 *
 * @throws Error if no parser has one of the names.
 */
export function benchFuzz({ inputCount, minutesEach, parsers }: FuzzOptions): void {
  const seed = Number(process.env["SEED"] ?? Math.trunc(systemRandom.next() * 2 ** 31));
  const targets = (parsers ?? FUZZ_TARGETS.map(({ name }) => name)).map((wanted) => {
    const target = FUZZ_TARGETS.find(({ name }) => name === wanted);
    if (target === undefined) throw new Error(`there is no parser ${wanted}`);
    return target;
  });
  console.log(`SEED=${seed}`);
  if (minutesEach !== undefined) {
    for (const target of targets) fuzzFor(target, { minutes: minutesEach, seed });
    return;
  }
  const numRuns = Math.ceil(inputCount / targets.length);
  const startMs = performance.now();
  for (const target of targets) {
    const targetStartMs = performance.now();
    fc.assert(fuzzProperty(target), { numRuns, seed });
    row(target.name, `${numRuns} inputs in ${((performance.now() - targetStartMs) / 1_000).toFixed(1)} s`);
  }
  const seconds = (performance.now() - startMs) / 1_000;
  row(`${targets.length} parsers, none failed`, `${numRuns * targets.length} inputs in ${seconds.toFixed(0)} s`);
}

/** Feeds inputs to one parser until the time is over. */
function fuzzFor(target: FuzzTarget, { minutes, seed }: { minutes: number; seed: number }): void {
  let inputs = 0;
  const counted: FuzzTarget = {
    ...target,
    run: (input) => {
      inputs += 1;
      target.run(input);
    },
  };
  const endMs = performance.now() + minutes * MINUTE_MS;
  for (let round = 0; performance.now() < endMs; round++) {
    fc.assert(fuzzProperty(counted), {
      numRuns: ROUND_INPUTS,
      seed: seed + round,
      interruptAfterTimeLimit: Math.max(1, endMs - performance.now()),
    });
  }
  row(target.name, `${inputs} inputs in ${minutes} min, none failed`);
}
