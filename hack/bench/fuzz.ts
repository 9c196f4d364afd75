import * as fc from "fast-check";
import { systemRandom } from "../../src/runtime/system.ts";
import { fuzzProperty } from "../fuzz/property.ts";
import { FUZZ_TARGETS } from "../fuzz/targets.ts";
import { row } from "./report.ts";

/**
 * Feeds `inputCount` inputs, shared out evenly, to every parser of what a BMC sends and of addresses. The first one that fails
 * ends it, with the seed and the smallest input that fails as well.
 */
export function benchFuzz(inputCount: number): void {
  const seed = Number(process.env["SEED"] ?? Math.trunc(systemRandom.next() * 2 ** 31));
  const numRuns = Math.ceil(inputCount / FUZZ_TARGETS.length);
  console.log(`SEED=${seed}`);
  const startMs = performance.now();
  for (const target of FUZZ_TARGETS) {
    const targetStartMs = performance.now();
    fc.assert(fuzzProperty(target), { numRuns, seed });
    row(target.name, `${numRuns} inputs in ${((performance.now() - targetStartMs) / 1_000).toFixed(1)} s`);
  }
  const seconds = (performance.now() - startMs) / 1_000;
  row(
    `${FUZZ_TARGETS.length} parsers, none failed`,
    `${numRuns * FUZZ_TARGETS.length} inputs in ${seconds.toFixed(0)} s`,
  );
}
