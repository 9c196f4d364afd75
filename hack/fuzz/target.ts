import { BmcError } from "../../src/bmc/interface/errors.ts";

/** One parser of what a BMC, a tenant or a person may send. Pure: the same input, the same outcome. */
export interface FuzzTarget {
  readonly name: string;
  /** Well-formed inputs, from which others are bred. */
  readonly seeds: readonly Buffer[];
  /**
   * Reads one input, and checks what must be true of what came out.
   *
   * @throws `refusal` where the input is refused; anything else is a defect.
   */
  run(input: Buffer): void;
  /** BmcError by default. */
  readonly refusal?: new (...given: never[]) => Error;
}

/** Runs a target. @throws what is a defect: everything but a refusal, and a prototype that the input has changed. */
export function tryInput(target: FuzzTarget, input: Buffer): void {
  try {
    target.run(input);
  } catch (error) {
    if (!(error instanceof (target.refusal ?? BmcError))) throw error;
  }
  for (const prototype of [Object.prototype, Array.prototype]) {
    // A built-in prototype has nothing that `for in` would find, unless the code has put it there.
    for (const name in prototype) throw new Error(`${target.name}: the input has given every object a ${name}`);
  }
}

/** For invariants within a target: a defect, and no refusal. */
export function must(truth: boolean, what: string): asserts truth {
  if (!truth) throw new Error(`it must be true that ${what}`);
}
