import { METAL3 } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_REQUESTS_MUTANTS: readonly Mutant[] = [
  // Requests of other kinds.
  mutant(
    "child-outlives-request",
    "requests/request",
    "a child goes with its request, though the Machine owns it too",
    "else await removeChild(runtime, found, signal);",
    "",
    METAL3,
  ),

  // OKD.
  mutant(
    "okd-live-request",
    "requests/okd-machine",
    "no fence begins on a view that still shows a request that was met",
    "const machine = await rereadMachine(runtime, this.type, watched, signal);",
    "const machine: Machine | undefined = watched;",
    "test/sim/okd.test.ts",
  ),
];
