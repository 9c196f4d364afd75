import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/config");

export const CONFIG_MUTANTS: readonly Mutant[] = [
  mutant(
    "no-limit-is-none",
    "parsers",
    "a limit of 0 means no limit, and not that nothing may begin",
    'return text === "0" ? Infinity : Number(text);',
    "return Number(text);",
    "test/unit/config/run-options.test.ts",
  ),
];
