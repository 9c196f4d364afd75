import { ORPHANS, ORPHANS_SIM } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_ORPHANS_MUTANTS: readonly Mutant[] = [
  mutant(
    "orphans-of-living",
    "orphans",
    "no remediation that storage holds is taken for lost",
    "  for (const { metadata } of items) gone.delete(metadata.uid);\n",
    "  for (const { metadata } of items.slice(1)) gone.delete(metadata.uid);\n",
    ORPHANS_SIM,
  ),
  mutant(
    "orphan-quarantine-off-at-once",
    "orphans",
    "the quarantine of a lost remediation stays until its node is Ready",
    '...(isReady(node) && { quarantine: "off" })',
    '...(node !== undefined && { quarantine: "off" })',
    ORPHANS_SIM,
  ),
  mutant(
    "others-owner-orphaned",
    "orphans",
    "a host that another kind owns is not given free",
    "if (owner?.kind === BARE_METAL_REMEDIATIONS.kind) owned.push",
    "if (owner !== undefined) owned.push",
    ORPHANS,
  ),
];
