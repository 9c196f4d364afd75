import { BmcError } from "../../src/bmc/interface/errors.ts";

/** One parser of data from outside. It is pure: the same input has the same outcome. */
export interface FuzzTarget {
  readonly name: string;
  /** Well-formed inputs. The fuzzer changes them. */
  readonly seeds: readonly Buffer[];
  /**
   * Parses one input, and checks invariants of the result.
   *
   * @throws `refusal` if the parser rejects the input. Any other error is a defect.
   */
  run(input: Buffer): void;
  /** The error of a rejected input; BmcError by default. */
  readonly refusal?: new (...given: never[]) => Error;
}

/** Runs a target. @throws for a defect: an error that is not a refusal, or a changed prototype. */
export function tryInput(target: FuzzTarget, input: Buffer): void {
  try {
    target.run(input);
  } catch (error) {
    if (!(error instanceof (target.refusal ?? BmcError))) throw error;
  }
  for (const prototype of [Object.prototype, Array.prototype]) {
    // `for in` finds nothing in a built-in prototype unless the code has added it.
    for (const name in prototype) throw new Error(`${target.name}: the input has given every object a ${name}`);
  }
}

/** Checks an invariant in a target. If it fails, that is a defect and not a refusal. */
export function must(truth: boolean, what: string): asserts truth {
  if (!truth) throw new Error(`it must be true that ${what}`);
}
