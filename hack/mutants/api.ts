import { OKD_MACHINES } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/api");

export const API_MUTANTS: readonly Mutant[] = [
  // OKD.
  mutant(
    "okd-either-label",
    "okd-machine",
    "either label of OKD's tells a Machine of the control plane",
    "[OKD_MACHINE_ROLE_LABEL, OKD_MACHINE_TYPE_LABEL].some(",
    "[OKD_MACHINE_ROLE_LABEL].some(",
    OKD_MACHINES,
  ),
];
